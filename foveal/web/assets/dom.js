// Elements that stay: a list is fitted to its items, never rebuilt, so that focus and a drag survive
// every answer.

/** A new element with classes and children. */
export function element(tag, classes = "", ...children) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  made.append(...children);
  return made;
}

/**
 * Give `parent` one child for each item, after its first `skipped` children, which are left alone:
 * `make()` makes one, `update(child, item, n)` fills it.
 */
export function fit(parent, items, make, update, skipped = 0) {
  while (parent.children.length > items.length + skipped) parent.lastElementChild.remove();
  while (parent.children.length < items.length + skipped) parent.append(make());
  items.forEach((item, n) => update(parent.children[n + skipped], item, n));
}

/** Set the text of an element, which is left alone if it has that text. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** How much of a color or of a level is shown: 0 to 1. */
export function share(target, value, name = "--share") {
  target.style.setProperty(name, Math.max(0, Math.min(1, value)).toFixed(4));
}

/**
 * Let one of the children of a group be reached by Tab, the others by arrow keys from there.
 * `items()` lists them; `keys` says how far each key moves.
 */
export function rove(group, items, keys = {ArrowLeft: -1, ArrowRight: 1}) {
  group.addEventListener("keydown", (event) => {
    const all = items();
    const from = all.indexOf(event.target);
    if (from < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const flipped = getComputedStyle(group).direction === "rtl" ? -1 : 1;
    let to;
    if (event.key in keys) to = from + flipped * keys[event.key];
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = all.length - 1;
    else return;
    event.preventDefault();
    const target = all[Math.max(0, Math.min(all.length - 1, to))];
    reach(all, target);
    target.focus();
  });
  group.addEventListener("focusin", (event) => {
    const all = items();
    if (all.includes(event.target)) reach(all, event.target);
  });
}

/** Make `target` the one that Tab reaches. */
export function reach(all, target) {
  for (const one of all) one.tabIndex = one === target ? 0 : -1;
}

/** Make the first one reachable where none is, as after symbols have gone. */
export function reachable(all) {
  if (all.length && !all.some((one) => one.tabIndex === 0)) all[0].tabIndex = 0;
}
