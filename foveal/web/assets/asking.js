// Questions to the server. Only the answer to the latest question counts: an older one is dropped,
// whether it is still wanted by the server or already on its way.

const headers = {"Content-Type": "application/json"};

/** Show this token with every question from here on. */
export function authorize(token) {
  headers.Authorization = `Bearer ${token}`;
}

/** An error whose text is meant for the reader. */
export class Refused extends Error {
  constructor(text, status = null) {
    super(text);
    this.status = status;
  }
}

async function answer(response) {
  let data;
  try {
    data = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(`The server answered with status ${response.status} and no text.`);
  }
  if (!response.ok) throw new Refused(data.error, response.status);
  return data;
}

async function fetched(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. Is it still running?");
  }
}

/** The runs that are served. */
export async function runs() {
  return answer(await fetched("/api/runs", {headers}));
}

/** Asks one question at a time. */
export class Asker {
  #latest = null;

  /** The answer, or null if another question came first. */
  async ask(question) {
    this.drop();
    const control = new AbortController();
    this.#latest = control;
    try {
      const response = await fetched("/api/explain", {
        method: "POST",
        headers,
        body: JSON.stringify(question),
        signal: control.signal,
      });
      const data = await answer(response);
      return this.#latest === control ? data : null;
    } catch (error) {
      if (this.#latest !== control || error.name === "AbortError") return null;
      throw error;
    }
  }

  /** Want no answer any more. */
  drop() {
    this.#latest?.abort();
    this.#latest = null;
  }
}
