// The toy: points drawn by mouse, finger or keyboard, and a machine that is trained again whenever anything changes.
//
// `mount` builds everything inside an element. It asks through a function, so that the same page works behind a web
// server and inside a notebook, and it keeps its state where it is told: in the address, or in the notebook's model.
import { COLOURS, contour, drawChart, drawContour, drawField, drawPoint, prepared, rgb, short } from "./draw.js";

const MACHINES = {
  SVC: { title: "classification (SVC)", sliders: ["C"] },
  NuSVC: { title: "classification (NuSVC)", sliders: ["nu"] },
  SVR: { title: "regression (SVR)", sliders: ["C", "epsilon"] },
  NuSVR: { title: "regression (NuSVR)", sliders: ["C", "nu"] },
  OneClassSVM: { title: "one class (OneClassSVM)", sliders: ["nu"] },
};
// Ends of the sliders; those marked move in powers of ten.
const SLIDERS = {
  C: { label: "C", from: 1e-2, to: 1e5, isLog: true },
  gamma: { label: "γ (gamma)", from: 1e-2, to: 1e3, isLog: true },
  nu: { label: "ν (nu)", from: 0.01, to: 1, isLog: false },
  epsilon: { label: "ε (epsilon)", from: 0, to: 0.5, isLog: false },
  degree: { label: "degree", from: 1, to: 8, isLog: false, isWhole: true },
  coef0: { label: "r (coef0)", from: -2, to: 2, isLog: false },
};
const START = {
  machine: "SVC", kernel: "rbf", C: 10, gamma: 10, coef0: 0, nu: 0.3, epsilon: 0.08, tol: 1e-3, degree: 3, points: [],
};
const MOST_POINTS = 500;
const FAST_SIDE = 72, FINE_SIDE = 150; // of the field, while something moves and when it rests

// ---------------------------------------------------------------------- presets

// A small random generator, so that a preset looks the same to everybody.
function random(seed) {
  let state = seed;
  const uniform = () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

const PRESETS = {
  "two clouds": () => cloud([[0.32, 0.36, 0], [0.68, 0.64, 1]], 22, 0.11),
  XOR: () => cloud([[0.25, 0.25, 0], [0.75, 0.75, 0], [0.25, 0.75, 1], [0.75, 0.25, 1]], 12, 0.07),
  "two moons": moons,
  spiral,
  "an outlier": () => [...cloud([[0.28, 0.5, 0], [0.72, 0.5, 1]], 14, 0.07), [0.62, 0.52, 0]],
  "five classes": () => cloud([0, 1, 2, 3, 4].map((k) => [0.5 + 0.32 * Math.cos(1.257 * k), 0.5 + 0.32 * Math.sin(1.257 * k), k]), 14, 0.07),
  "a wave with noise": wave,
  "a ring": ring,
};
const MACHINE_OF = { "a wave with noise": { machine: "SVR", kernel: "rbf", gamma: 30 }, "a ring": { machine: "OneClassSVM", kernel: "rbf", gamma: 10, nu: 0.1 } };

function cloud(centres, count, spread) {
  const { normal } = random(7);
  return centres.flatMap(([x, y, label]) => Array.from({ length: count }, () => [inside(x + spread * normal()), inside(y + spread * normal()), label]));
}
function moons() {
  const { normal } = random(3);
  return Array.from({ length: 60 }, (_, k) => {
    const angle = (Math.PI * (k % 30)) / 29, label = k < 30 ? 0 : 1;
    const x = label ? 0.62 - 0.25 * Math.cos(angle) : 0.38 + 0.25 * Math.cos(angle);
    const y = label ? 0.55 - 0.3 * Math.sin(angle) : 0.45 + 0.3 * Math.sin(angle);
    return [inside(x + 0.025 * normal()), inside(y + 0.025 * normal()), label];
  });
}
function spiral() {
  return Array.from({ length: 90 }, (_, k) => {
    const t = (k % 45) / 45, angle = 4.2 * Math.PI * t + (k < 45 ? 0 : Math.PI);
    return [0.5 + (0.06 + 0.38 * t) * Math.cos(angle), 0.5 + (0.06 + 0.38 * t) * Math.sin(angle), k < 45 ? 0 : 1];
  });
}
function wave() {
  const { uniform, normal } = random(5);
  return Array.from({ length: 50 }, () => {
    const x = uniform();
    return [x, inside(0.5 + 0.25 * Math.sin(7 * x) + 0.05 * normal()), 0];
  });
}
function ring() {
  const { uniform, normal } = random(11);
  return Array.from({ length: 70 }, () => {
    const angle = 2 * Math.PI * uniform(), reach = 0.3 + 0.04 * normal();
    return [inside(0.5 + reach * Math.cos(angle)), inside(0.5 + reach * Math.sin(angle)), 0];
  });
}
function inside(value) {
  return Math.min(Math.max(value, 0.02), 0.98);
}

// ---------------------------------------------------------------------- state in a line of text

function encoded(scene) {
  const points = scene.points.map(([x, y, label]) => [Number(x.toFixed(4)), Number(y.toFixed(4)), label]);
  const text = JSON.stringify({ ...scene, points });
  return btoa(unescape(encodeURIComponent(text))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function decoded(text) {
  const given = JSON.parse(decodeURIComponent(escape(atob(text.replaceAll("-", "+").replaceAll("_", "/")))));
  const scene = { ...START };
  for (const name of Object.keys(START)) if (name in given) scene[name] = given[name];
  if (!MACHINES[scene.machine] || typeof scene.kernel !== "string" || !Array.isArray(scene.points)) throw new Error("no scene");
  return scene;
}

// ---------------------------------------------------------------------- files

function fromText(text) {
  const points = [];
  for (const [number, line] of text.split(/\r?\n/).entries()) {
    if (!line.trim() || line.startsWith("#")) continue;
    const words = line.trim().split(/[\s,;]+/);
    let x, y, label;
    if (words.slice(1).some((word) => word.includes(":"))) {
      const features = Object.fromEntries(words.slice(1).map((word) => word.split(":").map(Number)));
      [label, x, y] = [Number(words[0]), features[1] ?? 0, features[2] ?? 0];
    } else [x, y, label] = [Number(words[0]), Number(words[1]), words.length > 2 ? Number(words[2]) : 0];
    if (![x, y, label].every(Number.isFinite)) {
      if (number === 0) continue; // a header
      throw new Error(`line ${number + 1} is neither "x,y,class" nor "class 1:x 2:y"`);
    }
    points.push([x, y, label]);
  }
  if (!points.length) throw new Error("the file has no points");
  if (points.length > MOST_POINTS) throw new Error(`the file has ${points.length} points; the toy takes ${MOST_POINTS}`);
  const labels = [...new Set(points.map((point) => point[2]))].sort((a, b) => a - b);
  if (labels.length > COLOURS.length) throw new Error(`the file has ${labels.length} classes; the toy takes ${COLOURS.length}`);
  const scaled = [0, 1].map((axis) => {
    const values = points.map((point) => point[axis]), low = Math.min(...values), high = Math.max(...values);
    return low >= 0 && high <= 1 ? (v) => v : (v) => 0.05 + (0.9 * (v - low)) / (high - low || 1);
  });
  return points.map(([x, y, label]) => [scaled[0](x), scaled[1](y), labels.indexOf(label)]);
}

const asCsv = (points) => "x,y,class\n" + points.map(([x, y, label]) => `${x.toFixed(5)},${y.toFixed(5)},${label}`).join("\n") + "\n";
const asLibsvm = (points) => points.map(([x, y, label]) => `${label} 1:${x.toFixed(5)} 2:${y.toFixed(5)}`).join("\n") + "\n";

// What the library knows: kernels with their formulas and parameters, solvers. Filled when the page is mounted.
let kernelKinds = {};

function parametersOf(scene) {
  return [...MACHINES[scene.machine].sliders, ...kernelKinds[scene.kernel].uses];
}

function asPython(scene) {
  const isRegression = scene.machine.endsWith("SVR"), rows = scene.points.map(([x, y, label]) => `[${x.toFixed(4)}, ${y.toFixed(4)}, ${label}]`);
  const settings = [`kernel="${scene.kernel}"`, ...parametersOf(scene).map((name) => `${name}=${Number(scene[name].toPrecision(6))}`)];
  return [
    "import numpy as np", `from hinge import ${scene.machine}`, "", `points = np.array([${rows.join(", ")}])`,
    isRegression ? "X, y = points[:, :1], points[:, 1]" : "X, y = points[:, :2], points[:, 2]",
    `machine = ${scene.machine}(${settings.join(", ")}).fit(X${scene.machine === "OneClassSVM" ? "" : ", y"})`,
    "print(machine.report_)", "",
  ].join("\n");
}

function asCommand(scene) {
  const number = { SVC: 0, NuSVC: 1, OneClassSVM: 2, SVR: 3, NuSVR: 4 }[scene.machine];
  const kernel = { linear: 0, poly: 1, rbf: 2, sigmoid: 3 }[scene.kernel];
  if (kernel === undefined) throw new Error(`LIBSVM's options have no ${scene.kernel} kernel`);
  const flags = { C: "-c", gamma: "-g", nu: "-n", epsilon: "-p", degree: "-d", coef0: "-r" };
  const words = parametersOf(scene).map((name) => `${flags[name]} ${Number(scene[name].toPrecision(6))}`);
  return `hinge train -s ${number} -t ${kernel} ${words.join(" ")} points.svm points.model`;
}

// ---------------------------------------------------------------------- answers

// An answer is the length of its head, the head as JSON, and numbers.
const lengthOf = (buffer) => new DataView(buffer).getUint32(0, true);
const headOf = (buffer) => JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, lengthOf(buffer))));
const numbersOf = (buffer) => new Float32Array(buffer, 4 + lengthOf(buffer));

// ---------------------------------------------------------------------- the page

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
};

export async function mount(place, ask, address) {
  const about = headOf(await ask("about", {}));
  kernelKinds = about.kernels;
  const scene = structuredClone(START);
  const view = { left: 0, right: 1, bottom: 0, top: 1 };
  const state = {
    label: 0, tool: "draw", answer: null, hasFailed: false, dragged: -1, cursor: [0.5, 0.5], hasCursor: false,
    solver: null, steps: 0, history: [], isRunning: false, map: null, preview: null, undo: [], frames: 0,
  };
  const root = element("div", { class: "toy" });
  place.append(root);

  // ---------- controls
  const machines = element("select", { "aria-label": "machine", onchange: () => change({ machine: machines.value }) },
    ...Object.entries(MACHINES).map(([value, { title }]) => element("option", { value }, title)));
  const kernels = element("select", { "aria-label": "kernel", onchange: () => change({ kernel: kernels.value }) },
    ...Object.entries(about.kernels).map(([value, { formula }]) => element("option", { value }, `${value}: ${formula.replace("coef0", "r").replace("degree", "d")}`)));
  const presets = element("select", { "aria-label": "preset", onchange: () => {
    const name = presets.value;
    if (name) change({ points: PRESETS[name](), ...(MACHINE_OF[name] || (MACHINES[scene.machine].title.startsWith("cl") ? {} : { machine: "SVC" })) });
    presets.value = "";
  } }, element("option", { value: "" }, "presets…"), ...Object.keys(PRESETS).map((name) => element("option", { value: name }, name)));
  const theme = element("button", { title: "light or dark", onclick: () => {
    const isDark = getComputedStyle(root).getPropertyValue("--paper").trim() !== "#ffffff";
    root.dataset.theme = isDark ? "light" : "dark";
    draw();
  } }, "light / dark");

  const sliders = Object.fromEntries(Object.entries(SLIDERS).map(([name, about]) => {
    const scale = (v) => (about.isLog ? Math.log10(v) : v), back = (v) => (about.isLog ? 10 ** v : v);
    const step = about.isWhole ? 1 : (scale(about.to) - scale(about.from)) / 200;
    const input = element("input", { type: "range", min: scale(about.from), max: scale(about.to), step: about.isWhole ? 1 : "any", "aria-label": about.label, "data-name": name,
      oninput: () => change({ [name]: about.isWhole ? Number(input.value) : back(Number(input.value)) }, { isDrag: true }),
      onchange: () => refine(),
      onkeydown: (event) => { // "any" leaves keys without a step
        const ways = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
        if (about.isWhole || !(event.key in ways)) return;
        event.preventDefault();
        const value = Math.min(Math.max(scale(scene[name]) + ways[event.key] * 4 * step, scale(about.from)), scale(about.to));
        change({ [name]: back(value) });
      } });
    const output = element("output");
    const row = element("label", { class: "slider" }, element("span", {}, about.label), input, output);
    const show = () => { input.value = scale(scene[name]); output.textContent = short(scene[name]); };
    return [name, { row, show }];
  }));

  const classes = COLOURS.map((colour, label) => {
    const bar = element("i");
    bar.style.background = colour;
    return element("button", { class: "class", "aria-label": `class ${label + 1}`, onclick: () => { state.label = label; setTool("draw"); } }, String(label + 1), bar);
  });
  const tools = Object.fromEntries([["draw", "draw"], ["move", "move"], ["erase", "erase"]].map(([name, title]) =>
    [name, element("button", { onclick: () => setTool(name) }, title)]));
  const classRow = element("div", { class: "row" }, ...classes);

  // ---------- the picture
  const canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": "points: arrow keys move a cursor, Enter adds a point, Delete removes the nearest one" });
  const hint = element("div", { class: "hint" }, "Click to draw points of class 1. Press 2 for the second class, or choose a preset above.");

  // ---------- what came out
  const fields = Object.fromEntries(["status", "violation", "gap", "support vectors", "steps", "milliseconds"].map((name) => [name, element("dd")]));
  fields.status.classList.add("status");
  fields.status.setAttribute("aria-live", "polite");
  const message = element("p", { class: "message", role: "alert" });
  const results = element("section", {}, element("h2", {}, "The answer, and its proof"),
    element("dl", {}, ...Object.entries(fields).flatMap(([name, value]) => [element("dt", {}, name), value])), message,
    element("p", { class: "note" }, "Rings are support vectors, as wide as their α; dashed ones are on the wrong side of their margin."));

  // ---------- step mode
  const solvers = element("select", { "aria-label": "solver", onchange: () => { state.solver = solvers.value || null; restart(); } },
    element("option", { value: "" }, "off: show the optimum"), ...about.solvers.map((name) => element("option", { value: name }, name)));
  const run = element("button", { onclick: () => toggleRun() }, "run");
  const stepButtons = element("div", { class: "row" }, element("button", { onclick: () => step(1) }, "step"), element("button", { onclick: () => step(-1) }, "back"), run, element("button", { onclick: () => restart() }, "start again"));
  const chart = element("canvas", { class: "chart", role: "img", "aria-label": "objective and violation over the steps" });
  const told = element("p", { class: "note", "aria-live": "polite" });
  const stepping = element("section", {}, element("h2", {}, "Watch a solver"), solvers, stepButtons, chart, told);

  // ---------- map
  const map = element("canvas", { class: "map", role: "img", "aria-label": "cross-validated score over C and gamma" });
  const mapNote = element("p", { class: "note" });
  const mapButton = element("button", { onclick: () => askForMap() }, "draw the map of C and γ");
  const mapping = element("section", {}, element("h2", {}, "C and γ by cross-validation"), element("div", { class: "row" }, mapButton), map, mapNote);

  // ---------- files
  const opener = element("input", { type: "file", accept: ".csv,.txt,.svm,.libsvm,.dat", class: "hidden", onchange: async () => {
    const [file] = opener.files;
    if (file) attempt(async () => change({ points: fromText(await file.text()) }));
    opener.value = "";
  } });
  const files = element("section", {}, element("h2", {}, "Take it with you"), opener,
    element("div", { class: "row" },
      element("button", { onclick: () => copy(asPython(scene), "Python") }, "copy as Python"),
      element("button", { onclick: () => attempt(() => copy(asCommand(scene), "command")) }, "copy as command"),
      element("button", { onclick: () => copy(location.href.split("#")[0] + "#" + encoded(scene), "link") }, "copy link")),
    element("div", { class: "row" },
      element("button", { onclick: () => opener.click() }, "open a file"),
      element("button", { onclick: () => save("points.csv", new Blob([asCsv(scene.points)])) }, "save CSV"),
      element("button", { onclick: () => save("points.svm", new Blob([asLibsvm(scene.points)])) }, "save LIBSVM"),
      element("button", { onclick: () => canvas.toBlob((blob) => save("toy.png", blob)) }, "save PNG")));
  const keys = element("details", {}, element("summary", {}, "Keys"), element("ul", {},
    ...[["1–9", "class of new points"], ["D M E", "draw, move, erase"], ["arrows", "move the cursor; with Shift faster"], ["Enter", "add a point there"], ["Delete", "remove the nearest point"], ["U", "undo"], ["S", "a step of the solver"], ["R", "run or pause"]]
      .map(([key, what]) => element("li", {}, element("kbd", {}, key), " ", what))));

  root.append(
    element("header", {}, element("h1", {}, "Hinge toy"), machines, kernels, presets, element("span", { class: "grow" }), element("button", { onclick: () => change({ points: [] }) }, "clear"), theme),
    element("main", {},
      element("div", {}, element("div", { class: "stage" }, canvas, hint)),
      element("aside", {},
        element("section", {}, element("div", { class: "row" }, ...Object.values(tools)), classRow, ...Object.values(sliders).map(({ row }) => row)),
        results, stepping, mapping, files, element("section", {}, keys))));

  // ---------------------------------------------------------------------- changes

  function change(news, { isDrag = false, keepsSteps = false } = {}) {
    if ("points" in news && !isDrag) remember();
    Object.assign(scene, news);
    if (!keepsSteps && state.solver) restart({ isQuiet: true });
    if ("points" in news || "machine" in news || "kernel" in news) state.map = null;
    state.preview = null;
    showControls();
    ask_(isDrag ? FAST_SIDE : FINE_SIDE);
    later();
  }

  function remember() {
    state.undo.push(scene.points.map((point) => [...point]));
    if (state.undo.length > 100) state.undo.shift();
  }

  let writing = 0;
  function later() { // the address follows when things have come to rest
    clearTimeout(writing);
    writing = setTimeout(() => address.write(encoded(scene)), 250);
  }

  function setTool(name) {
    state.tool = name;
    showControls();
  }

  function showControls() {
    machines.value = scene.machine;
    kernels.value = scene.kernel;
    const used = parametersOf(scene);
    for (const [name, { row, show }] of Object.entries(sliders)) {
      row.classList.toggle("hidden", !used.includes(name));
      show();
    }
    classRow.classList.toggle("hidden", !["SVC", "NuSVC"].includes(scene.machine));
    classes.forEach((button, label) => button.setAttribute("aria-pressed", String(state.tool === "draw" && label === state.label)));
    for (const [name, button] of Object.entries(tools)) button.setAttribute("aria-pressed", String(name === state.tool));
    hint.classList.toggle("hidden", scene.points.length > 0);
    mapping.classList.toggle("hidden", !(["SVC", "SVR"].includes(scene.machine) && scene.kernel !== "linear"));
    stepButtons.classList.toggle("hidden", !state.solver);
    chart.classList.toggle("hidden", !state.solver);
    told.classList.toggle("hidden", !state.solver);
    run.textContent = state.isRunning ? "pause" : "run";
  }

  // ---------------------------------------------------------------------- questions, one at a time

  let wanted = null, isAsking = false;
  function ask_(side) {
    wanted = { side };
    if (!isAsking) pump();
  }

  async function pump() {
    isAsking = true;
    while (wanted) {
      const { side } = wanted;
      wanted = null;
      const isClassifier = ["SVC", "NuSVC"].includes(scene.machine), n = new Set(scene.points.map((point) => point[2])).size;
      if (scene.points.length < 2 || (isClassifier && n < 2)) {
        state.answer = null;
        state.hasFailed = true;
        message.textContent = scene.points.length < 2 ? "" : "Points of one class need no machine: press 2, then click.";
        showAnswer();
        draw();
        continue;
      }
      if (state.solver && state.steps === 0) {
        state.answer = null;
        showAnswer();
        draw();
        continue;
      }
      const shown = { ...structuredClone(scene), ...(state.preview || {}) };
      const question = { scene: shown, ...view, side };
      try {
        const buffer = state.solver && !state.preview
          ? await ask("step", { ...question, solver: state.solver, steps: state.steps })
          : await ask("fit", question);
        state.answer = unpacked(buffer, shown);
        if (state.hasFailed) message.textContent = "";
        state.hasFailed = false;
        noteStep();
      } catch (error) {
        message.textContent = error.message;
        state.hasFailed = true;
        state.isRunning = false;
        if (!scene.points.length || state.answer?.alphas.length !== scene.points.length) state.answer = null;
      }
      showAnswer();
      draw();
      state.frames += 1;
    }
    isAsking = false;
    if (state.isRunning) setTimeout(() => state.isRunning && step(1), 120);
  }

  let refining = 0;
  function refine() { // a finer picture when the mouse rests
    clearTimeout(refining);
    refining = setTimeout(() => { if (!isAsking) ask_(FINE_SIDE); }, 60);
  }

  function unpacked(buffer, shown) {
    const numbers = numbersOf(buffer), n = shown.points.length;
    return { ...headOf(buffer), alphas: numbers.subarray(0, n), slacks: numbers.subarray(n, 2 * n), field: numbers.subarray(2 * n) };
  }

  function showAnswer() {
    const answer = state.answer;
    for (const value of Object.values(fields)) value.textContent = "–";
    if (!answer) return;
    const isOnItsWay = answer.is_over === false;
    fields.status.textContent = isOnItsWay ? "on its way" : answer.status.replaceAll("_", " ");
    fields.status.dataset.good = isOnItsWay ? "null" : String(answer.status === "converged");
    fields.status.title = answer.message;
    fields.violation.textContent = `${short(answer.violation)} ≤ ${short(answer.tolerance)}`.replace("≤", answer.violation <= answer.tolerance ? "≤" : ">");
    fields.gap.textContent = short(answer.gap);
    fields["support vectors"].textContent = `${answer.n_support} of ${scene.points.length}`;
    fields.steps.textContent = String(answer.steps ?? answer.iterations);
    fields.milliseconds.textContent = answer.milliseconds === undefined ? "–" : answer.milliseconds.toFixed(1);
  }

  // ---------------------------------------------------------------------- step mode

  function restart({ isQuiet = false } = {}) {
    Object.assign(state, { steps: 0, history: [], isRunning: false });
    told.textContent = state.solver ? "Nothing has moved yet: all variables are where they start." : "";
    showControls();
    if (!isQuiet) ask_(FINE_SIDE);
    drawHistory();
  }

  function step(count) {
    if (!state.solver) return;
    if (count > 0 && state.answer?.is_over && state.steps > 0) {
      state.isRunning = false;
      showControls();
      return;
    }
    state.steps = Math.max(state.steps + count, 0);
    state.history.length = Math.min(state.history.length, state.steps);
    ask_(FAST_SIDE);
    drawHistory();
  }

  function toggleRun() {
    state.isRunning = !state.isRunning;
    showControls();
    if (state.isRunning) step(1);
  }

  function noteStep() {
    const answer = state.answer;
    if (!state.solver || answer.pair === undefined) return;
    state.history[state.steps - 1] = { objective: answer.objective, violation: answer.violation };
    const who = answer.pair.map((place) => place + 1).join(", ");
    told.textContent = answer.is_over
      ? `Over: ${answer.status.replaceAll("_", " ")} after ${state.steps} steps.`
      : `Step ${state.steps} moved ${answer.pair.length === 1 ? "point" : "points"} ${who || "nothing"}; violation ${short(answer.violation)}, objective ${short(answer.objective)}.`;
    if (answer.is_over) {
      state.isRunning = false;
      showControls();
    }
    drawHistory();
  }

  function drawHistory() {
    if (!state.solver) return;
    const known = state.history.filter(Boolean);
    drawChart(chart, [
      { values: known.map((h) => h.objective), colour: colourOf("--accent"), label: "objective", isLog: false },
      { values: known.map((h) => h.violation), colour: COLOURS[1], label: "violation", isLog: true },
    ], colourOf("--faint"));
  }

  // ---------------------------------------------------------------------- the map

  async function askForMap() {
    mapButton.disabled = true;
    mapNote.textContent = "cross-validating…";
    const asked = structuredClone(scene);
    try {
      const buffer = await ask("map", { scene: asked });
      const head = headOf(buffer);
      state.map = { ...head, scores: numbersOf(buffer) };
      mapNote.textContent = `${head.score} over ${head.folds} folds. Point at a cell to see that machine, click to take it.`;
    } catch (error) {
      mapNote.textContent = error.message;
    }
    mapButton.disabled = false;
    drawMap();
  }

  function drawMap() {
    map.classList.toggle("hidden", !state.map);
    if (!state.map) return;
    const { context, width, height } = prepared(map), { scores, C, gamma } = state.map;
    const edge = { left: 34, bottom: 30 }, cell = [(width - edge.left) / gamma.length, (height - edge.bottom) / C.length];
    const finite = Array.from(scores).filter(Number.isFinite), low = Math.min(...finite), high = Math.max(...finite);
    const from = rgb(colourOf("--paper") === "#ffffff" ? "#eef3f8" : "#222a35"), to = rgb("#0072b2");
    C.forEach((_, row) => gamma.forEach((__, column) => {
      const share = (scores[row * gamma.length + column] - low) / (high - low || 1);
      context.fillStyle = `rgb(${from.map((value, k) => Math.round(value + share * (to[k] - value))).join(",")})`;
      context.fillRect(edge.left + column * cell[0], height - edge.bottom - (row + 1) * cell[1], cell[0] + 0.5, cell[1] + 0.5);
    }));
    context.fillStyle = colourOf("--ink");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(`γ from ${short(gamma[0])} to ${short(gamma[gamma.length - 1])}`, edge.left + (width - edge.left) / 2, height - 12);
    context.save();
    context.translate(14, (height - edge.bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(`C from ${short(C[0])} to ${short(C[C.length - 1])}`, 0, 0);
    context.restore();
    const spot = (values, value) => (Math.log10(value) - Math.log10(values[0])) / (Math.log10(values[1]) - Math.log10(values[0])) + 0.5;
    const here = state.preview || scene;
    context.beginPath();
    context.arc(edge.left + spot(gamma, here.gamma) * cell[0], height - edge.bottom - spot(C, here.C) * cell[1], 5, 0, 2 * Math.PI);
    Object.assign(context, { strokeStyle: COLOURS[1], lineWidth: 2.5 });
    context.stroke();
  }

  function cellAt(event) {
    const box = map.getBoundingClientRect(), { C, gamma } = state.map;
    const column = Math.floor(((event.clientX - box.left - 34) / (box.width - 34)) * gamma.length);
    const row = Math.floor(((box.height - 30 - (event.clientY - box.top)) / (box.height - 30)) * C.length);
    if (row < 0 || column < 0 || row >= C.length || column >= gamma.length) return null;
    return { C: C[row], gamma: gamma[column], score: state.map.scores[row * gamma.length + column] };
  }
  map.addEventListener("pointermove", (event) => {
    const found = state.map && cellAt(event);
    state.preview = found ? { C: found.C, gamma: found.gamma } : null;
    if (found) mapNote.textContent = `C = ${short(found.C)}, γ = ${short(found.gamma)}: ${state.map.score} ${short(found.score)}`;
    ask_(FAST_SIDE);
    drawMap();
  });
  map.addEventListener("pointerleave", () => { state.preview = null; ask_(FINE_SIDE); drawMap(); });
  map.addEventListener("click", (event) => {
    const found = state.map && cellAt(event);
    if (found) change({ C: found.C, gamma: found.gamma });
    drawMap();
  });

  // ---------------------------------------------------------------------- drawing

  const colourOf = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const toScreen = (x, y, width, height) => [(x - view.left) / (view.right - view.left) * width, height - (y - view.bottom) / (view.top - view.bottom) * height];

  function draw() {
    const { context, width, height } = prepared(canvas), answer = state.answer;
    const ink = colourOf("--ink"), paper = colourOf("--paper"), faint = colourOf("--faint"), isDark = paper !== "#ffffff";
    context.fillStyle = paper;
    context.fillRect(0, 0, width, height);
    const isRegression = scene.machine.endsWith("SVR"), isCurrent = answer && answer.alphas.length === scene.points.length;
    if (answer && !isRegression && answer.field.length === answer.side ** 2) drawBackground(context, width, height, answer, ink, isDark);
    if (answer && isRegression && answer.field.length === answer.side) drawCurve(context, width, height, answer, ink, faint);
    if (isCurrent) drawSlacks(context, width, height, answer, faint);
    const strongest = isCurrent ? Math.max(...answer.alphas, 1e-300) : 1;
    scene.points.forEach(([x, y, label], k) => {
      const [px, py] = toScreen(x, y, width, height);
      const weight = isCurrent && answer.alphas[k] > 0 ? Math.max(Math.sqrt(answer.alphas[k] / strongest), 0.12) : 0;
      const isBounded = isCurrent && answer.slacks[k] > 2 * scene.tol;
      const isChosen = Boolean(state.solver && !state.preview && isCurrent && answer.pair?.includes(k));
      drawPoint(context, px, py, ["SVC", "NuSVC"].includes(scene.machine) ? label : 0, { weight, isBounded, isChosen, ink, paper });
    });
    if (state.hasCursor) drawCursor(context, width, height, ink);
    if (state.map) drawMap();
  }

  function drawBackground(context, width, height, answer, ink, isDark) {
    const { field, side, classes: known } = answer, strength = isDark ? 95 : 80;
    if (known.length > 2) {
      const colours = COLOURS.map(rgb);
      drawField(context, width, height, side, (k) => [...colours[Math.round(field[k])], strength], false);
      for (const label of known) {
        const mine = Float32Array.from(field, (value) => (Math.round(value) === label ? 1 : -1));
        drawContour(context, width, height, side, contour(mine, side, 0), { colour: ink, width: 1 });
      }
      return;
    }
    const [negative, positive] = known.length ? known.map((label) => rgb(COLOURS[label])) : [[128, 128, 128], rgb(COLOURS[0])];
    const isOneClass = !known.length;
    const scale = isOneClass ? Math.max(...Array.from(field, Math.abs)) || 1 : 2;
    drawField(context, width, height, side, (k) => {
      const value = field[k], share = Math.min(Math.abs(value) / scale, 1);
      return [...(value > 0 ? positive : negative), strength * (0.35 + 0.65 * share)];
    });
    const levels = isOneClass ? [[0, 2.25, []]] : [[-1, 1.25, [5, 4]], [0, 2.25, []], [1, 1.25, [5, 4]]];
    for (const [level, line, dash] of levels) drawContour(context, width, height, side, contour(field, side, level), { colour: ink, width: line, dash });
  }

  function drawCurve(context, width, height, answer, ink, faint) {
    const { field, side, tube } = answer;
    const line = (shift) => {
      context.beginPath();
      for (let k = 0; k < side; k++) {
        const [x, y] = toScreen(view.left + (view.right - view.left) * k / (side - 1), field[k] + shift, width, height);
        context[k ? "lineTo" : "moveTo"](x, y);
      }
    };
    context.save();
    if (tube) {
      Object.assign(context, { strokeStyle: faint, lineWidth: 1.25 });
      context.setLineDash([5, 4]);
      for (const shift of [-tube, tube]) { line(shift); context.stroke(); }
      context.setLineDash([]);
    }
    Object.assign(context, { strokeStyle: ink, lineWidth: 2.25 });
    line(0);
    context.stroke();
    context.restore();
  }

  // From a point that is on the wrong side of its margin to the margin, along the slope of the field.
  function drawSlacks(context, width, height, answer, faint) {
    const isRegression = scene.machine.endsWith("SVR"), { field, side } = answer;
    context.save();
    Object.assign(context, { strokeStyle: faint, lineWidth: 1 });
    context.beginPath();
    scene.points.forEach(([x, y, label], k) => {
      const slack = answer.slacks[k];
      if (!(slack > 2 * scene.tol)) return;
      let end;
      if (isRegression) {
        const column = Math.min(Math.max(Math.round((x - view.left) / (view.right - view.left) * (side - 1)), 0), side - 1);
        end = [x, y - Math.sign(y - field[column]) * slack];
      } else if (answer.classes.length === 2 && field.length === side ** 2) {
        const slope = slopeAt(field, side, x, y), size = slope[0] ** 2 + slope[1] ** 2;
        if (!(size > 1e-9)) return;
        const way = (label === answer.classes[1] ? 1 : -1) * slack / size;
        const reach = Math.min(Math.hypot(way * slope[0], way * slope[1]), 0.2) / Math.hypot(way * slope[0], way * slope[1]);
        end = [x + reach * way * slope[0], y + reach * way * slope[1]];
      } else return;
      context.moveTo(...toScreen(x, y, width, height));
      context.lineTo(...toScreen(...end, width, height));
    });
    context.stroke();
    context.restore();
  }

  function slopeAt(field, side, x, y) {
    const column = Math.min(Math.max(Math.round(x * (side - 1)), 1), side - 2), row = Math.min(Math.max(Math.round(y * (side - 1)), 1), side - 2);
    const at = (c, r) => field[r * side + c], half = (side - 1) / 2;
    return [(at(column + 1, row) - at(column - 1, row)) * half, (at(column, row + 1) - at(column, row - 1)) * half];
  }

  function drawCursor(context, width, height, ink) {
    const [x, y] = toScreen(...state.cursor, width, height);
    context.save();
    Object.assign(context, { strokeStyle: ink, lineWidth: 1.5 });
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + 4 * dx, y + 4 * dy);
      context.lineTo(x + 14 * dx, y + 14 * dy);
    }
    context.stroke();
    context.restore();
  }

  // ---------------------------------------------------------------------- hands

  function where(event) {
    const box = canvas.getBoundingClientRect();
    return [inside(view.left + (event.clientX - box.left) / box.width * (view.right - view.left)), inside(view.bottom + (1 - (event.clientY - box.top) / box.height) * (view.top - view.bottom))];
  }

  function nearest([x, y], reach) {
    let best = -1, distance = reach;
    scene.points.forEach(([px, py], k) => {
      const d = Math.hypot(px - x, py - y);
      if (d < distance) [best, distance] = [k, d];
    });
    return best;
  }

  function add(spot) {
    if (scene.points.length >= MOST_POINTS) {
      message.textContent = `The toy takes ${MOST_POINTS} points.`;
      return;
    }
    change({ points: [...scene.points, [...spot, state.label]] });
  }

  function erase(spot, reach) {
    const place = nearest(spot, reach);
    if (place >= 0) change({ points: scene.points.filter((_, k) => k !== place) });
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    state.hasCursor = false;
    const spot = where(event), place = nearest(spot, 0.025);
    if (state.tool === "erase" || event.button === 2 || event.altKey) erase(spot, 0.035);
    else if (place >= 0) {
      remember();
      state.dragged = place;
    } else if (state.tool === "draw") {
      add(spot);
      state.dragged = scene.points.length - 1;
    }
  });
  canvas.addEventListener("pointermove", (event) => {
    if (state.dragged < 0) return;
    const points = scene.points.map((point, k) => (k === state.dragged ? [...where(event), point[2]] : point));
    change({ points }, { isDrag: true });
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { state.dragged = -1; refine(); });
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());

  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key, far = event.shiftKey ? 0.1 : 0.02;
    const ways = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] };
    const acts = {
      d: () => setTool("draw"), m: () => setTool("move"), e: () => setTool("erase"), u: undo,
      s: () => step(1), b: () => step(-1), r: () => state.solver && toggleRun(),
    };
    const atCanvas = event.target === canvas;
    if (key >= "1" && key <= "9") { state.label = Number(key) - 1; setTool("draw"); }
    else if (key in acts) acts[key]();
    else if (atCanvas && key in ways) {
      state.cursor = [inside(state.cursor[0] + ways[key][0]), inside(state.cursor[1] + ways[key][1])];
      state.hasCursor = true;
      draw();
    } else if (atCanvas && key === "Enter") add([...state.cursor]);
    else if (atCanvas && (key === "Delete" || key === "Backspace")) erase(state.cursor, Infinity);
    else return;
    event.preventDefault();
  });

  function undo() {
    const points = state.undo.pop();
    if (points) change({ points }, { isDrag: true });
  }

  // ---------------------------------------------------------------------- the world outside

  async function attempt(action) {
    try { await action(); } catch (error) { message.textContent = error.message; }
  }

  async function copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // pages without the right to the clipboard
      const box = element("textarea", {}, text);
      root.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
    }
    state.copied = text;
    told_(`${what} copied`);
  }

  function told_(text) {
    message.textContent = text;
    setTimeout(() => { if (message.textContent === text) message.textContent = ""; }, 2500);
  }

  function save(name, blob) {
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function restore() {
    const text = address.read();
    if (!text) return false;
    try {
      const given = decoded(text);
      if (!kernelKinds[given.kernel]) throw new Error("no such kernel");
      Object.assign(scene, given);
      return true;
    } catch {
      message.textContent = "The link holds no scene that this page understands.";
      return false;
    }
  }

  address.listen(() => { if (address.read() !== encoded(scene) && restore()) { showControls(); ask_(FINE_SIDE); } });
  new ResizeObserver(() => { draw(); drawHistory(); }).observe(canvas);
  if (!restore()) scene.points = PRESETS["two moons"]();
  showControls();
  drawMap();
  ask_(FINE_SIDE);
  return { scene, state, change };
}
