// The weights of all steps as a table: a row for each output, a column for each input.

import {named, number, shown} from "./text.js";
import {element, fit, reach, reachable, say, share} from "./dom.js";

export const MOST_CELLS = 4000; // more would neither fit on a screen nor be drawn between two keys

function cell() {
  const made = element("td");
  made.tabIndex = -1;
  return made;
}

function head(scope) {
  return () => {
    const made = element("th", "", element("bdi"));
    made.scope = scope;
    return made;
  };
}

export class WeightsMap {
  #table;
  #columns;
  #rows;

  /** `lit(step, place)` hears of what is pointed at, `forced(step, place)` of a cell that is chosen. */
  constructor(table, {lit, forced}) {
    this.#table = table;
    this.#columns = element("tr", "", element("td"));
    this.#columns.firstElementChild.setAttribute("role", "presentation");
    this.#rows = element("tbody");
    table.append(element("thead", "", this.#columns), this.#rows);
    const at = (event) => this.#place(event.target.closest("tbody td"));
    const pointed = (event) => at(event) && lit(...at(event));
    this.#rows.addEventListener("pointerover", pointed);
    this.#rows.addEventListener("focusin", pointed);
    this.#rows.addEventListener("pointerleave", () => lit(null, null));
    this.#rows.addEventListener("focusout", () => lit(null, null));
    this.#rows.addEventListener("click", (event) => at(event) && forced(...at(event)));
    this.#rows.addEventListener("keydown", (event) => {
      const found = at(event);
      if (!found) return;
      if (event.key === "Enter" || event.key === " ") forced(...found);
      else if (!this.#moved(event, ...found)) return;
      event.preventDefault();
    });
  }

  #place(found) {
    if (!found) return null;
    return [found.parentElement.rowIndex - 1, found.cellIndex - 1];
  }

  #moved(event, row, column) {
    const flipped = this.#table.dir === "rtl" ? -1 : 1;
    const [down, right] =
      {
        ArrowUp: [-1, 0],
        ArrowDown: [1, 0],
        ArrowLeft: [0, -flipped],
        ArrowRight: [0, flipped],
        Home: [0, -Infinity],
        End: [0, Infinity],
      }[event.key] ?? [];
    if (down === undefined) return false;
    const rows = this.#rows.children;
    const to = rows[Math.max(0, Math.min(rows.length - 1, row + down))];
    const last = to.children.length - 1;
    const target = to.children[Math.max(1, Math.min(last, column + 1 + right))];
    reach(this.#cells(), target);
    target.focus();
    return true;
  }

  #cells() {
    return Array.from(this.#rows.querySelectorAll("td"));
  }

  show(data, forcible, direction) {
    const {sources, steps, best} = data;
    this.#table.dir = direction;
    this.#table.classList.toggle("forcible", forcible);
    const headed = (made, source) => say(made.firstElementChild, source === "" ? "∅" : shown(source));
    fit(this.#columns, sources, head("col"), headed, 1);
    fit(this.#rows, steps, () => element("tr", "", head("row")()), (row, step, n) => {
      say(row.firstElementChild.firstElementChild, shown(step.token));
      const weighed = (made, weight, place) => {
        share(made, weight);
        made.classList.toggle("best", Boolean(best?.[n]?.[place]));
        const said = `${named(step.token)} reads ${named(sources[place])}: ${number(weight)}`;
        made.setAttribute("aria-label", said);
      };
      fit(row, step.weights, cell, weighed, 1);
    });
    reachable(this.#cells());
  }

  /** Mark a row and a column, or none. */
  light(step, place) {
    Array.from(this.#rows.children).forEach((row, n) => row.classList.toggle("here", n === step));
    Array.from(this.#columns.children).forEach((made, n) =>
      made.classList.toggle("here", n - 1 === place && place !== null),
    );
  }
}
