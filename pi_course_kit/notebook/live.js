// The live view: what a reader sees, the events, and the message as far as it is known.
// The kernel sends entries [kind, index, delta, place, changes, lane] (timeline.py says what they
// mean). They are kept here, so the state after any of them can be drawn without the kernel.

const STRIDE = 256; // entries between two states that are kept
const TAIL = 4000; // characters of a long text that are drawn
const ROW = 24; // pixels, the height of an event's row
const HINT = "Drag the slider or click an event to see that moment.";
const SPARE = 4; // rows drawn above and below those in sight

// What is known after an entry. A state is never changed: it shares its blocks with the next.

const NOTHING = { blocks: [], note: "" };

const growing = (block) => (block.type === "text" ? "text" : "raw");

function next(state, [, , delta, place, changes]) {
  if (place == null && !changes) return state;
  const blocks = state.blocks.slice();
  for (const [at, block] of Object.entries(changes?.blocks ?? {})) blocks[at] = block;
  if (changes?.size != null) blocks.length = changes.size;
  if (place != null) {
    const name = growing(blocks[place]);
    blocks[place] = { ...blocks[place], [name]: (blocks[place][name] ?? "") + delta };
  }
  return { blocks, note: changes?.note ?? state.note };
}

class Log {
  entries = [];
  carried = false; // the events carry a message
  laned = false;
  end = null; // a line that says how it ended
  aborted = false;
  #states = [NOTHING]; // after 0, STRIDE, 2 * STRIDE … entries
  #newest = NOTHING;

  /** Takes a batch; false if one before it is missing. What came before is not taken twice. */
  take({ at, entries, carried, end, aborted }) {
    if (at > this.entries.length) return false;
    for (const entry of entries.slice(this.entries.length - at)) {
      this.entries.push(entry);
      this.laned ||= Boolean(entry[5]);
      this.#newest = next(this.#newest, entry);
      if (this.entries.length % STRIDE === 0) this.#states.push(this.#newest);
    }
    this.carried ||= carried;
    if (end != null) Object.assign(this, { end, aborted });
    return true;
  }

  stateAt(count) {
    if (count === this.entries.length) return this.#newest;
    const kept = Math.floor(count / STRIDE);
    return this.entries.slice(kept * STRIDE, count).reduce(next, this.#states[kept]);
  }
}

/** JSON that is cut off, as far as it can be read: what is open is closed, half a name left out. */
function readable(raw) {
  const open = []; // the brackets that would close it, innermost first
  let best = null; // the longest beginning that ends with a value, closed
  let quoted = false;
  let isName = false;
  for (let at = 0; at < raw.length; at++) {
    const char = raw[at];
    if (quoted && char === "\\") at++;
    else if (char === '"') quoted = !quoted;
    else if (!quoted && "{[".includes(char)) open.unshift(char === "{" ? "}" : "]");
    else if (!quoted && "}]".includes(char)) open.shift();
    if (quoted) continue;
    if (",{".includes(char)) isName = open[0] === "}";
    else if (":[".includes(char)) isName = false;
    const end = char === "," ? at : at + 1;
    if (",{}[]".includes(char) || (char === '"' && !isName)) best = [end, open.join("")];
  }
  const half = raw.replace(/(?<!\\)((?:\\\\)*)\\(u[0-9a-fA-F]{0,3})?$/, "$1");
  const tries = [quoted && !isName ? half + '"' + open.join("") : raw];
  if (best) tries.push(raw.slice(0, best[0]) + best[1]);
  for (const text of tries) {
    try {
      return JSON.stringify(JSON.parse(text), null, 1);
    } catch {
      continue;
    }
  }
  return "";
}

// Drawing

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const box = (name, ...children) => make("div", { class: `pi-live-${name}` }, ...children);

const button = (label, title, onclick) =>
  Object.assign(make("button", { type: "button", title }, label), { onclick });

/** A text with what is new in it marked; of a long one only the end. */
function grown(text, fresh) {
  const start = Math.max(0, text.length - Math.max(TAIL, fresh));
  const cut = text.length - fresh;
  const shown = box("text", text.slice(start, cut));
  if (start > 0) shown.prepend(box("left", `${start} characters before this`));
  if (fresh) shown.append(make("mark", {}, text.slice(cut)));
  return shown;
}

function drawBlock(block, place, fresh, numbered) {
  const card = box("block");
  const head = block.type === "text" ? "text" : `tool call ${block.name} \u00b7 ${block.id}`;
  if (numbered) card.append(box("head", `block ${place} \u00b7 ${head}`));
  if (block.type === "text") card.append(grown(block.text, fresh));
  else {
    const whole = block.raw == null || block.arguments !== "{}";
    const value = readable(whole ? block.arguments : block.raw);
    if (block.raw != null) {
      card.append(box("label", "raw arguments, as they come"), grown(block.raw, fresh));
    }
    card.append(box("label", whole ? "arguments, complete" : "readable so far"));
    card.append(grown(value || "nothing yet", 0));
  }
  return card;
}

let views = 0;

class View {
  #id = `pi-live-${++views}`;
  #at = 0; // how many entries are shown
  #follow = true; // stay at the newest
  #playing = null;
  #frame = null;
  #had = null; // the element that has the focus
  #revealed = null; // the row that was last brought into sight

  constructor(log, stop) {
    this.log = log;
    this.reader = this.#pane("reader", "What a reader sees", "characters, as they come");
    this.events = this.#pane("events", "Events", "what the stream delivers: type, index, delta");
    this.known = this.#pane("known", "", "");
    this.#list();
    this.state = make("strong", { class: "pi-live-state", role: "status" });
    this.summary = make("span", {});
    this.where = make("span", { class: "pi-live-where" });
    this.slider = make("input", { class: "pi-live-slider", type: "range", "aria-label": "Moment" });
    this.slider.addEventListener("input", () => {
      this.go(this.slider.valueAsNumber, this.slider.value === this.slider.max);
    });
    this.back = button("Back", "One event back (left arrow)", () => this.go(this.#at - 1));
    this.play = button("Play", "Play the events from here", () => this.#toggle());
    this.forth = button("Forward", "One event on (right arrow)", () => this.go(this.#at + 1));
    this.newest = button("Newest", "Go to the newest event and stay there", () =>
      this.go(log.entries.length, true),
    );
    this.stop = button("Stop", "Leave the stream here", stop);
    const bar = [this.back, this.play, this.forth, this.newest, this.slider, this.where, this.stop];
    this.root = make("div", { class: "pi-live", role: "group", "aria-label": "Live view" });
    this.root.dataset.lmSuppressShortcuts = true; // JupyterLab's arrow keys would leave the cell
    this.root.append(
      box("top", this.state, this.summary, make("span", { class: "pi-live-hint" }, HINT)),
      box("panes", this.reader.box, this.events.box, this.known.box),
      box("bar", ...bar),
    );
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.root.addEventListener("focusin", (event) => (this.#had = event.target));
    this.root.addEventListener("focusout", (event) => {
      if (event.relatedTarget) this.#had = null; // not when the view is moved in the page
    });
    new ResizeObserver(() => this.changed(true)).observe(this.events.body);
  }

  #pane(part, title, about) {
    const pane = { title: box("title", title), about: make("div", {}, about) };
    const head = box("caption", pane.title, pane.about);
    head.id = `${this.#id}-${part}`;
    pane.body = make("div", { class: "pi-live-body", role: "region", tabindex: 0 });
    pane.body.setAttribute("aria-labelledby", head.id);
    pane.box = box("pane", head, pane.body);
    return pane;
  }

  #list() {
    const { body } = this.events;
    body.setAttribute("role", "listbox");
    body.append((this.rows = make("div", { class: "pi-live-rows", role: "presentation" })));
    body.addEventListener("scroll", () => this.#drawRows());
    body.addEventListener("click", (event) => {
      const row = event.target.closest("[data-count]");
      if (row) this.go(Number(row.dataset.count));
    });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const up = event.target === this.events.body && { ArrowUp: -1, ArrowDown: 1 };
    const steps = { ArrowLeft: -1, ArrowRight: 1, ...up };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.go(this.#at + steps[event.key]);
  }

  /** Show the state after so many entries; follow: stay at the newest from now on. */
  go(count, follow = false) {
    clearInterval(this.#playing);
    this.#playing = null;
    this.#show(count, follow);
  }

  #show(count, follow) {
    this.#follow = follow;
    this.#at = Math.max(0, Math.min(count, this.log.entries.length));
    this.changed();
  }

  #toggle() {
    const { entries } = this.log;
    if (this.#playing) return this.go(this.#at);
    if (this.#at === entries.length) this.#show(0, false);
    const many = entries.length - this.#at;
    const tick = () => {
      this.#show(this.#at + Math.ceil(many / 200), false);
      if (this.#at === entries.length) this.go(this.#at, true);
    };
    this.#playing = setInterval(tick, Math.max(40, Math.min(700, 8000 / Math.max(1, many))));
    this.changed();
  }

  /** Draw at the page's next frame, however often it is asked. */
  changed(moved = false) {
    if (moved) this.#revealed = null;
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#draw();
    });
  }

  #draw() {
    const { log } = this;
    const many = log.entries.length;
    if (this.#follow) this.#at = many;
    const entry = log.entries[this.#at - 1];
    const state = log.stateAt(this.#at);
    const unit = log.laned ? "row" : "event";
    const word = log.end == null ? "Running" : log.aborted ? "Aborted" : "Finished";
    if (this.state.textContent !== word) this.state.textContent = word;
    Object.assign(this.root.dataset, { state: word.toLowerCase(), laned: log.laned });
    this.summary.textContent = log.end ?? `${many} ${unit}s so far`;
    this.where.textContent = this.#at ? `${unit} ${this.#at} of ${many}` : `before ${unit} 1`;
    Object.assign(this.slider, { max: many, value: this.#at });
    this.slider.setAttribute("aria-valuetext", `${this.where.textContent} ${entry?.[0] ?? ""}`);
    this.play.textContent = this.#playing ? "Pause" : "Play";
    this.back.disabled = this.#at === 0;
    this.forth.disabled = this.#at === many;
    this.newest.disabled = this.#at === many && (this.#follow || log.end != null);
    this.stop.hidden = log.end != null;
    this.#drawReader(state, entry);
    this.#drawKnown(state, entry);
    this.#reveal(many);
    this.#drawRows();
  }

  #drawReader({ blocks }, entry) {
    const texts = blocks.filter((block) => block.type === "text");
    const grows = texts.length && texts.at(-1) === blocks[entry?.[3]];
    const whole = texts.map((block) => block.text).join("\n");
    this.#fill(this.reader, whole ? grown(whole, grows ? entry[2].length : 0) : "nothing yet");
  }

  #drawKnown({ blocks, note }, entry) {
    const { carried } = this.log;
    this.known.title.textContent = carried ? "The partial" : "Known so far";
    this.known.about.textContent = carried ? "the message, as of this event" : "the deltas, joined";
    const numbered = carried || blocks.length > 1 || blocks[0]?.type === "call";
    const cards = blocks.map((block, place) =>
      drawBlock(block, place, entry?.[3] === place ? entry[2].length : 0, numbered),
    );
    if (note) cards.push(box("note", note));
    if (!cards.length) cards.push(carried ? "no content yet" : "nothing yet");
    this.#fill(this.known, ...cards);
  }

  #fill({ body }, ...children) {
    body.replaceChildren(...children);
    const mark = body.querySelector("mark");
    const grew = mark?.closest(".pi-live-block") ?? mark;
    if (grew) body.scrollTop = grew.offsetTop + grew.offsetHeight - body.clientHeight + 6;
  }

  /** Scroll the list so that the current row is in sight. */
  #reveal(many) {
    const { body } = this.events;
    this.rows.style.height = `${many * ROW}px`;
    if (this.#revealed === this.#at) return; // let the reader scroll, also while it runs
    this.#revealed = this.#at;
    const top = Math.max(0, this.#at - 1) * ROW;
    const lowest = top + ROW - body.clientHeight;
    body.scrollTop = Math.max(lowest, Math.min(body.scrollTop, top));
  }

  #drawRows() {
    const { body } = this.events;
    const first = Math.max(0, Math.floor(body.scrollTop / ROW) - SPARE);
    const last = first + Math.ceil((body.clientHeight || 400) / ROW) + 2 * SPARE;
    const entries = this.log.entries.slice(first, last);
    this.rows.replaceChildren(...entries.map((entry, n) => this.#row(entry, first + n + 1)));
    const current = this.rows.querySelector("[data-when=now]")?.id ?? "";
    body.setAttribute("aria-activedescendant", current);
  }

  #row([kind, index, delta, , , lane], count) {
    const cells = [["number", count]];
    if (this.log.laned) cells.push(["lane", lane || "event"]);
    cells.push(["kind", kind], ["index", index ?? ""]);
    const row = make("div", {
      id: `${this.#id}-row-${count}`,
      class: "pi-live-row",
      style: `top: ${(count - 1) * ROW}px`,
      title: delta ?? "",
      "data-count": count,
      "data-when": count === this.#at ? "now" : count > this.#at ? "later" : "past",
      role: "option",
      "aria-selected": count === this.#at,
      "aria-posinset": count,
      "aria-setsize": this.log.entries.length,
    });
    if (delta) cells.push(["delta", delta.slice(0, 200).replaceAll("\n", "\u23ce")]);
    row.append(...cells.map(([name, text]) => make("span", { class: `pi-live-${name}` }, text)));
    return row;
  }

  /** Put the view there, with the focus that it had. */
  mount(place, before = null) {
    const had = this.#had;
    place.insertBefore(this.root, before);
    had?.focus({ preventScroll: true });
    this.changed(true);
  }
}

/** Calls back when the element is in the page. */
function whenThere(element, act, tries = 600) {
  if (element.isConnected) act();
  else if (tries) requestAnimationFrame(() => whenThere(element, act, tries - 1));
}

/** When JupyterLab takes the widget out of the output, stand in front of the text form. */
function stay(view, area, ready) {
  const observer = new MutationObserver(() => {
    if (!ready() || area.contains(view.root)) return;
    const free = area.querySelector(".pi-live-form:not(.pi-live + .pi-live-form)");
    if (!free) return;
    observer.disconnect(); // the cell's next run brings a view of its own
    view.mount(free.parentElement, free);
  });
  observer.observe(area, { childList: true, subtree: true });
}

export default () => {
  const log = new Log();
  let view, area, kept;

  function take(model, batch) {
    if (!log.take(batch)) model.send({ have: log.entries.length });
    view.changed();
    keep(model);
  }

  // Only a page that can take over says so; elsewhere the widget stays in the output.
  function keep(model) {
    if (kept || !area || log.end == null) return;
    kept = true;
    model.send({ kept: true });
  }

  return {
    initialize({ model }) {
      view = new View(log, () => model.send({ stop: true }));
      const takeWhole = () => take(model, JSON.parse(model.get("whole")));
      model.on("msg:custom", (batch) => take(model, batch));
      model.on("change:whole", takeWhole);
      if (model.get("whole")) takeWhole();
      else model.send({ have: 0 });
    },
    render({ model, el }) {
      whenThere(el, () => {
        view.mount(el);
        const found = el.closest(".jp-OutputArea");
        if (found && found !== area) stay(view, (area = found), () => kept);
        keep(model);
      });
    },
  };
};
