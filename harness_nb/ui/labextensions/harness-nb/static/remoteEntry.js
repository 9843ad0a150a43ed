// The page's half of "put these cells below that cell", for JupyterLab 4.4 and Notebook 7.4. Written by hand: there is no
// build step. The kernel's half is harness_nb/ui/here.py; the two talk over a comm that the kernel opens.
//
// Protocol, version 1. Messages of the page carry {version, from: ID OF THIS PAGE} and are said again until answered,
// because the first one may reach a kernel that is busy (it is read when the kernel is free, later ones at once).
//   kernel opens "harness_nb.cells"  {version, below: [cell ids, the first that is there counts]}
//   page    {event: "here", exact, name}       I show that notebook; exact: the request came from this very page
//   kernel  {event: "put", to: ID, session, below, cells: [nbformat 4.5 cells with metadata.harness_nb.placed.cell]}
//   page    {event: "done", inserted, replaced, unchanged, removed, kept: [cell ids], below: CELL ID}
//           or  {event: "failed", message}
//   kernel closes the comm.
// A page that does not show the notebook says nothing. What "put" does is told at putCells.
//
// The file is a module-federation container: JupyterLab calls init with the modules that it shares, then get.
(() => {
  "use strict";

  const NAME = "harness-nb";
  const APPROVALS = new URL("approvals.js", document.currentScript.src); // buttons below a cell that waits
  const TARGET = "harness_nb.cells";
  const VERSION = 1;
  const KEY = "harness_nb"; // all machine data of a cell is under this metadata key
  const AGAIN = 500; // milliseconds until a message is said again
  const TIMES = 60;

  // ---- cells ------------------------------------------------------------------------------------------------------

  const joined = (value) =>
    Array.isArray(value) && value.every((line) => typeof line === "string") ? value.join("") : value;

  /** The value with sorted keys and joined lines, so that saving and loading a notebook changes nothing. */
  function canonical(value) {
    const whole = joined(value);
    if (Array.isArray(whole)) return whole.map(canonical);
    if (whole === null || typeof whole !== "object") return whole;
    const keys = Object.keys(whole).sort();
    return keys.map((key) => [key, canonical(whole[key])]);
  }

  /** Outputs without execution counts, neighbouring pieces of one stream as one: what a person sees. */
  function seen(outputs) {
    const result = [];
    for (const { execution_count, transient, metadata, ...output } of outputs || []) {
      const last = result[result.length - 1];
      if (output.output_type === "stream" && last && last.name === output.name) last.text += joined(output.text);
      else result.push(output.output_type === "stream" ? { ...output, text: joined(output.text) } : output);
    }
    return result;
  }

  /** A short print of kind, source and outputs of an nbformat cell (cyrb53, 53 bits; not for secrets). */
  function fingerprint(cell) {
    const text = JSON.stringify(canonical([cell.cell_type, joined(cell.source), seen(cell.outputs)]));
    let [a, b] = [0xdeadbeef, 0x41c6ce57];
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      a = Math.imul(a ^ code, 2654435761);
      b = Math.imul(b ^ code, 1597334677);
    }
    a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
    b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
    return (4294967296 * (2097151 & b) + (a >>> 0)).toString(16);
  }

  /** What we noted when we put this cell here; undefined for a person's cell and for a person's copy of ours. */
  function noted(cell) {
    const placed = (cell.getMetadata(KEY) || {}).placed;
    return placed && placed.id === cell.id ? placed : undefined;
  }

  const edited = (cell) => fingerprint(cell.toJSON()) !== noted(cell).print;

  /** The wanted id, or the first free one like it; ids have at most 64 characters. */
  function freeId(notebook, wanted) {
    const taken = new Set(notebook.cells.map((cell) => cell.id));
    let id = wanted;
    for (let n = 2; taken.has(id); n++) id = `${wanted.slice(0, 64 - `-${n}`.length)}-${n}`;
    return id;
  }

  /** Insert one nbformat cell and note how it looks now, so that a person's edit can be told later. */
  function insertCell(model, at, cell, session, below) {
    const notebook = model.sharedModel;
    const id = freeId(notebook, cell.id);
    notebook.insertCell(at, { ...cell, id });
    if (cell.cell_type === "code") model.cells.get(at).outputs.fromJSON(cell.outputs); // else they stay unseen
    const made = notebook.cells[at];
    const placed = { ...cell.metadata[KEY].placed, session, below, id, print: fingerprint(made.toJSON()) };
    made.setMetadata(KEY, { ...cell.metadata[KEY], placed });
  }

  /**
   * Put the cells of a session below a cell, in order. Cells that an earlier call put below the same cell are replaced
   * where they are; those below another cell, or no longer in the session, go. A cell that a person has edited since
   * (kind, source or outputs) is left as it is, and no second one is put beside it.
   */
  function putCells(model, { session, below, cells }) {
    const notebook = model.sharedModel;
    const index = (id) => notebook.cells.findIndex((cell) => cell.id === id);
    const anchor = below.find((id) => index(id) >= 0);
    if (model.readOnly) throw new Error("the notebook is read-only");
    if (anchor === undefined) throw new Error("the cell to put them below is no longer in the notebook");
    const done = { inserted: 0, replaced: 0, unchanged: 0, removed: 0, kept: [], below: anchor };
    const wanted = new Set(cells.map((cell) => cell.metadata[KEY].placed.cell));
    const before = new Map();
    for (const cell of notebook.cells.filter((cell) => (noted(cell) || {}).session === session)) {
      const { cell: key, below: above } = noted(cell);
      if (above === anchor && wanted.has(key) && index(cell.id) > index(anchor)) before.set(key, cell);
      else if (edited(cell)) done.kept.push(cell.id);
      else {
        notebook.deleteCell(index(cell.id));
        done.removed++;
      }
    }
    let next = index(anchor) + 1;
    for (const cell of cells) {
      const old = before.get(cell.metadata[KEY].placed.cell);
      const at = old ? index(old.id) : next;
      if (old && edited(old)) done.kept.push(old.id);
      else if (old && fingerprint(cell) === noted(old).print) done.unchanged++;
      else {
        if (old) notebook.deleteCell(at);
        insertCell(model, at, cell, session, anchor);
        done[old ? "replaced" : "inserted"]++;
      }
      next = Math.max(next, at + 1);
    }
    return done;
  }

  // ---- messages ---------------------------------------------------------------------------------------------------

  /** The notebook of this page that has one of these cells and runs on this kernel; best the one that asked. */
  function findNotebook(tracker, below, kernelId, client) {
    let found;
    tracker.forEach((panel) => {
      const kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
      const model = panel.content.model;
      if (!model || !kernel || kernel.id !== kernelId) return;
      if (!model.sharedModel.cells.some((cell) => below.includes(cell.id))) return;
      const exact = kernel.clientId === client;
      if (!found || (exact && !found.exact)) found = { model, exact };
    });
    return found;
  }

  /** Answer one comm that the kernel has opened. */
  function answer(page, tracker, kernel, comm, open) {
    let timer;
    const stop = () => clearInterval(timer);
    const say = (message) => {
      stop();
      let times = 0;
      const send = () => {
        if (comm.isDisposed || ++times > TIMES) return stop();
        try {
          comm.send({ version: VERSION, from: page.id, ...message });
        } catch (error) {
          stop(); // the kernel is gone
        }
      };
      timer = setInterval(send, AGAIN);
      send();
    };
    const attempt = (work) => {
      try {
        work();
      } catch (error) {
        console.error(`${NAME}:`, error);
        say({ event: "failed", message: String((error && error.message) || error) });
      }
    };
    const { version, below } = open.content.data;
    const find = () => findNotebook(tracker, below, kernel.id, open.parent_header.session);
    comm.onClose = stop;
    comm.onMsg = (message) => {
      stop();
      const { event, to, ...request } = message.content.data;
      if (event !== "put" || to !== page.id) return;
      attempt(() => {
        const found = find();
        if (!found) throw new Error("the notebook has been closed");
        say({ event: "done", ...putCells(found.model, request) });
      });
    };
    attempt(() => {
      if (version !== VERSION) {
        throw new Error(`this page speaks version ${VERSION}, the kernel ${version}: install one harness_nb, reload`);
      }
      const found = find();
      if (found) say({ event: "here", exact: found.exact, name: page.name });
    });
  }

  // ---- the plugin -------------------------------------------------------------------------------------------------

  /** Listen on whatever kernel a notebook or console has, now and later. */
  function watch(page, tracker, panel) {
    const context = panel.sessionContext;
    const listen = () => {
      const kernel = context.session && context.session.kernel;
      if (kernel) kernel.registerCommTarget(TARGET, (comm, open) => answer(page, tracker, kernel, comm, open));
    };
    context.kernelChanged.connect(listen);
    listen();
  }

  function activate(app, notebooks, consoles) {
    const page = { id: Math.random().toString(36).slice(2), name: `${app.name} ${app.version}` };
    import(APPROVALS)
      .then((approvals) => each(notebooks, consoles, (panel) => approvals.watch(page, notebooks, panel)))
      .catch((error) => console.error(`${NAME}:`, error));
    each(notebooks, consoles, (panel) => watch(page, notebooks, panel));
  }

  /** Do it for each notebook and console, also for those to come. */
  function each(notebooks, consoles, act) {
    // Of several connections of a page to one kernel only the first gets comms, and that may be a console's.
    for (const tracker of [notebooks, consoles].filter(Boolean)) {
      tracker.forEach(act);
      tracker.widgetAdded.connect((_, panel) => act(panel));
    }
  }

  // ---- the container ----------------------------------------------------------------------------------------------

  let scope;

  /** A module of JupyterLab: of all shared versions the highest, as for its own plugins. */
  async function load(name) {
    const higher = (one, other) => other.localeCompare(one, "en", { numeric: true });
    const [best] = Object.keys(scope[name]).sort(higher);
    return (await scope[name][best].get())();
  }

  async function extension() {
    const { INotebookTracker } = await load("@jupyterlab/notebook");
    const consoles = await load("@jupyterlab/console").catch(() => ({}));
    const optional = consoles.IConsoleTracker ? [consoles.IConsoleTracker] : [];
    const plugin = { id: `${NAME}:cells`, autoStart: true, requires: [INotebookTracker], optional, activate };
    return { __esModule: true, default: plugin };
  }

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB[NAME] = {
    init: (shared) => void (scope = shared),
    get: async () => {
      const made = await extension();
      return () => made;
    },
  };
})();
