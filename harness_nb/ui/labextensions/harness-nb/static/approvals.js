// The page's half of approvals: buttons below the cell that waits, for JupyterLab 4.4 and Notebook 7.4. The kernel's half
// is harness_nb/ui/buttons.py; remoteEntry.js loads this file and calls watch for every notebook and console.
//
// Protocol, version 1. The kernel opens one comm for the questions of a cell, and opens it again (same id) every two
// seconds while a question is open, so that a page that is loaded later shows it, too.
//   kernel opens "harness_nb.approvals"  {version, cell: CELL ID, asking: [numbers]}
//   page    {event: "ready", from}                       I show that cell; said at each opening until "show" is heard
//   kernel  {event: "show", asks: [{ask, name, title, reason, source: [[text, colour]], kind, fields: [{name, text}]}]}
//   page    {event: "answer", from, ask, choice: "allow" | "kind" | "deny" | "edit", word, texts: {name: text}}
//           said again until one of these is heard:
//   kernel  {event: "settled", ask, words}               answered, here or elsewhere; the first answer counts
//   kernel  {event: "refused", ask, words}               that answer cannot be; the question stays open
// Everything that comes from a call is put into the page as text, never as HTML. Only a real click or key counts.

const TARGET = "harness_nb.approvals";
const VERSION = 1;
const AGAIN = 500; // milliseconds until an answer is said again
const TIMES = 60;

const STYLE = `
.harness-nb-asks { margin: 4px 8px 6px calc(var(--jp-cell-collapser-width, 8px) + var(--jp-cell-prompt-width, 64px) + 4px);
  font-family: var(--jp-ui-font-family); font-size: var(--jp-ui-font-size1, 13px); color: var(--jp-ui-font-color1); }
.harness-nb-ask { border-left: 3px solid #b4670f; padding: 2px 0 4px 9px; margin: 6px 0; }
.harness-nb-ask p { margin: 0 0 4px; overflow-wrap: anywhere; }
.harness-nb-ask pre, .harness-nb-ask textarea { font-family: var(--jp-code-font-family, monospace); font-size: 12px;
  line-height: 1.45; color: inherit; background: rgba(128, 128, 128, .12); border: 0; border-radius: 4px; margin: 2px 0 6px;
  padding: 6px 8px; white-space: pre-wrap; overflow-wrap: anywhere; box-sizing: border-box; width: 100%; }
.harness-nb-ask pre { max-height: 60vh; overflow: auto; }
.harness-nb-ask textarea { border: 1px solid var(--jp-border-color1); resize: vertical; display: block; }
.harness-nb-row { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
.harness-nb-asks button, .harness-nb-asks input { font: inherit; color: inherit; padding: 2px 10px; border-radius: 3px;
  border: 1px solid var(--jp-border-color1); background: var(--jp-layout-color1); min-height: 26px; }
.harness-nb-asks button { cursor: pointer; }
.harness-nb-asks button[hidden] { display: none; }
.harness-nb-asks button:hover { background: var(--jp-layout-color2); }
.harness-nb-asks button:focus-visible, .harness-nb-asks input:focus-visible, .harness-nb-ask textarea:focus-visible {
  outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
.harness-nb-asks button.harness-nb-yes { border-color: #238b4e; }
.harness-nb-asks button.harness-nb-no { border-color: #dc4338; }
.harness-nb-asks input { flex: 1 1 14em; min-width: 8em; }
.harness-nb-said { color: #b4670f; }
`;

function make(tag, text = "", name = "") {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function button(words, name, act) {
  const made = make("button", words, name);
  made.type = "button";
  made.addEventListener("click", (event) => event.isTrusted && act()); // not for scripts of outputs
  return made;
}

/** The questions of one comm, below one cell. */
class Asks {
  constructor(page) {
    this.page = page;
    this.node = make("div", "", "harness-nb-asks");
    this.node.dataset.lmSuppressShortcuts = "true"; // what is typed here is no command of the notebook
    for (const kind of ["keydown", "keypress", "mousedown"]) {
      this.node.addEventListener(kind, (event) => event.stopPropagation());
    }
    this.all = make("div", "", "harness-nb-row");
    this.open = new Map(); // number of a question: its node
    this.timers = new Map();
  }

  say(message) {
    try {
      this.comm.send({ version: VERSION, from: this.page.id, ...message });
    } catch (error) {
      this.clear(); // the kernel is gone
    }
  }

  answer(ask, choice, more = {}) {
    if (this.timers.has(ask)) return;
    let times = 0;
    const send = () => (++times > TIMES ? this.stop(ask) : this.say({ event: "answer", ask, choice, ...more }));
    this.timers.set(ask, setInterval(send, AGAIN));
    this.note(ask, "Sent.");
    send();
  }

  stop(ask) {
    clearInterval(this.timers.get(ask));
    this.timers.delete(ask);
  }

  note(ask, words) {
    const said = this.open.get(ask)?.querySelector(".harness-nb-said");
    if (said) said.textContent = words;
  }

  hear(message) {
    const { event, ask, asks, words } = message;
    if (event === "show") {
      const wanted = new Set(asks.map((each) => each.ask));
      [...this.open.keys()].filter((number) => !wanted.has(number)).forEach((number) => this.remove(number));
      for (const each of asks) if (!this.open.has(each.ask)) this.add(each);
    } else if (event === "settled") {
      this.stop(ask);
      this.remove(ask);
    } else if (event === "refused") {
      this.stop(ask);
      this.note(ask, words);
    }
    this.drawAll();
  }

  add(each) {
    const { ask } = each;
    const node = make("div", "", "harness-nb-ask");
    node.setAttribute("role", "group");
    node.setAttribute("aria-label", `Approval ${ask}: ${each.name}`);
    const head = make("p");
    head.append(make("b", `${ask} · ${each.name}`), ` needs your approval: ${each.reason}`);
    const source = make("pre");
    for (const [text, colour] of each.source) {
      const piece = make("span", text);
      if (colour) piece.style.color = colour;
      source.append(piece);
    }
    const word = make("input");
    word.placeholder = "a word to the model (with Deny)";
    word.setAttribute("aria-label", "A word to the model, sent with Deny");
    const deny = () => this.answer(ask, "deny", { word: word.value });
    word.addEventListener("keydown", (event) => event.key === "Enter" && event.isTrusted && deny());
    const row = make("div", "", "harness-nb-row");
    row.append(button("Allow once", "harness-nb-yes", () => this.answer(ask, "allow")));
    const kind = button("Allow this kind", "", () => this.answer(ask, "kind"));
    kind.title = `For this session: ${each.kind}`;
    row.append(kind);
    row.append(button("Edit…", "", () => this.edit(each, node, row)));
    row.append(button("Deny", "harness-nb-no", deny), word, make("span", "", "harness-nb-said"));
    const about = make("p", `“This kind” is, for this session: ${each.kind}`);
    about.style.opacity = ".75";
    node.append(head, source, row, about);
    this.open.set(ask, node);
    this.node.append(node);
  }

  edit({ ask, fields }, node, row) {
    const others = [...row.querySelectorAll("button")].filter((each) => each.textContent !== "Deny");
    for (const other of others) other.hidden = true; // nobody shall run the old call in place of the changed one
    const texts = fields.map(({ name, text }) => {
      const label = make("label", name);
      const area = make("textarea");
      area.value = text;
      area.rows = Math.min(20, text.split("\n").length + 1);
      area.spellcheck = false;
      label.append(area);
      node.insertBefore(label, row);
      return [name, area];
    });
    const run = () =>
      this.answer(ask, "edit", { texts: Object.fromEntries(texts.map(([name, area]) => [name, area.value])) });
    const back = () => {
      for (const made of node.querySelectorAll("label, .harness-nb-editing")) made.remove();
      for (const other of others) other.hidden = false;
    };
    row.prepend(
      button("Run as changed", "harness-nb-yes harness-nb-editing", run),
      button("Cancel the edit", "harness-nb-editing", back),
    );
    texts[0]?.[1].focus();
  }

  remove(ask) {
    this.stop(ask);
    this.open.get(ask)?.remove();
    this.open.delete(ask);
    if (!this.open.size) this.node.remove();
  }

  clear() {
    [...this.open.keys()].forEach((ask) => this.remove(ask));
  }

  /** With several questions, one row that answers them all. */
  drawAll() {
    this.all.remove();
    if (this.open.size < 2) return;
    const every = (choice) => {
      for (const [ask, node] of this.open) {
        const edited = node.querySelector("textarea"); // is answered by its own button
        if (choice === "deny" || !edited) this.answer(ask, choice, { word: "" });
      }
    };
    this.all.replaceChildren(
      button(`Allow all ${this.open.size}`, "harness-nb-yes", () => every("allow")),
      button(`Deny all ${this.open.size}`, "harness-nb-no", () => every("deny")),
    );
    this.node.append(this.all);
  }
}

/** The widget of a cell in a notebook of this page that runs on this kernel. */
function findCell(tracker, cellId, kernelId) {
  let found;
  tracker.forEach((panel) => {
    const kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
    if (!kernel || kernel.id !== kernelId) return;
    found = found || panel.content.widgets.find((widget) => widget.model.id === cellId);
  });
  return found;
}

const shown = new Map(); // id of a comm: its Asks

function answer(page, tracker, kernel, comm, open) {
  const { version, cell, asking } = open.content.data;
  comm.onMsg = () => {};
  if (version !== VERSION) return; // the kernel asks in another way then
  const widget = findCell(tracker, cell, kernel.id);
  if (!widget) return;
  const asks = shown.get(comm.commId) || new Asks(page);
  shown.set(comm.commId, asks);
  asks.comm = comm;
  comm.onMsg = (message) => {
    asks.hear(message.content.data);
    if (asks.open.size && asks.node.parentNode !== widget.node) widget.node.append(asks.node);
  };
  comm.onClose = () => {
    asks.clear();
    shown.delete(comm.commId);
  };
  if (asking.some((number) => !asks.open.has(number)) || asks.node.parentNode !== widget.node) asks.say({ event: "ready" });
}

/** Listen on whatever kernel a notebook or console has, now and later. */
export function watch(page, tracker, panel) {
  if (!document.getElementById("harness-nb-style")) {
    const style = make("style", STYLE);
    style.id = "harness-nb-style";
    document.head.append(style);
  }
  const context = panel.sessionContext;
  const listen = () => {
    const kernel = context.session && context.session.kernel;
    if (kernel) kernel.registerCommTarget(TARGET, (comm, open) => answer(page, tracker, kernel, comm, open));
  };
  context.kernelChanged.connect(listen);
  listen();
}
