// Pictures: fields, contours, points, small charts. Nothing here knows of machines or servers.

// Okabe and Ito's colours, which people with any colour vision tell apart, and a shape for each besides.
export const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f", "#b8a800"];

export function rgb(colour) {
  return [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
}

// Fit a canvas to its place on the screen; return its context in units of CSS pixels.
export function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  const width = Math.max(Math.round(box.width * ratio), 1), height = Math.max(Math.round(box.height * ratio), 1);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, box.width, box.height);
  return { context, width: box.width, height: box.height };
}

// A field of side × side values, the first row at the bottom, as a smooth picture over the whole canvas.
export function drawField(context, width, height, side, colourOf, smooth = true) {
  const image = new ImageData(side, side);
  for (let row = 0; row < side; row++) {
    for (let column = 0; column < side; column++) {
      const place = 4 * ((side - 1 - row) * side + column);
      const [r, g, b, a] = colourOf(row * side + column);
      image.data[place] = r;
      image.data[place + 1] = g;
      image.data[place + 2] = b;
      image.data[place + 3] = a;
    }
  }
  const small = new OffscreenCanvas(side, side);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = smooth;
  // Values belong to the corners of cells, pixels to their middles: half a pixel hangs over each edge.
  const over = { x: width / (side - 1) / 2, y: height / (side - 1) / 2 };
  context.drawImage(small, -over.x, -over.y, width + 2 * over.x, height + 2 * over.y);
}

// Marching squares: lines where a field has a given level, in units of cells.
export function contour(field, side, level) {
  const pieces = [];
  const at = (x, y) => field[y * side + x] - level;
  for (let y = 0; y + 1 < side; y++) {
    for (let x = 0; x + 1 < side; x++) {
      const corners = [at(x, y), at(x + 1, y), at(x + 1, y + 1), at(x, y + 1)];
      const crossings = [];
      for (let k = 0; k < 4; k++) {
        const a = corners[k], b = corners[(k + 1) % 4];
        if ((a < 0) === (b < 0)) continue;
        const t = a / (a - b);
        const edge = [2 * (y * side + x), 2 * (y * side + x + 1) + 1, 2 * ((y + 1) * side + x), 2 * (y * side + x) + 1][k];
        crossings.push({ edge, spot: [[x + t, y], [x + 1, y + t], [x + 1 - t, y + 1], [x, y + 1 - t]][k] });
      }
      for (let k = 0; k + 1 < crossings.length; k += 2) pieces.push([crossings[k], crossings[k + 1]]);
    }
  }
  return joined(pieces);
}

// Join pieces that end on the same edge of a cell: dashes then run on along the whole line.
function joined(pieces) {
  const ends = new Map();
  pieces.forEach((piece, number) => piece.forEach(({ edge }) => ends.set(edge, [...(ends.get(edge) || []), number])));
  const isUsed = new Array(pieces.length).fill(false);
  const follow = (number, from) => {
    const line = [];
    while (number !== undefined) {
      isUsed[number] = true;
      const end = pieces[number].find(({ edge }) => edge !== from) || pieces[number][1];
      line.push(end.spot);
      from = end.edge;
      number = ends.get(from).find((other) => !isUsed[other]);
    }
    return line;
  };
  return pieces.flatMap((piece, number) => {
    if (isUsed[number]) return [];
    const ahead = follow(number, piece[0].edge);
    const behind = ends.get(piece[0].edge).find((other) => !isUsed[other]);
    const back = behind === undefined ? [] : follow(behind, piece[0].edge).reverse();
    return [[...back, piece[0].spot, ...ahead]];
  });
}

export function drawContour(context, width, height, side, lines, style) {
  context.save();
  Object.assign(context, { strokeStyle: style.colour, lineWidth: style.width, lineCap: "round" });
  context.setLineDash(style.dash || []);
  context.beginPath();
  const unit = [width / (side - 1), height / (side - 1)];
  for (const line of lines) line.forEach(([x, y], k) => context[k ? "lineTo" : "moveTo"](x * unit[0], height - y * unit[1]));
  context.stroke();
  context.restore();
}

const SHAPES = [
  (c, r) => c.arc(0, 0, r, 0, 2 * Math.PI),
  (c, r) => c.rect(-0.85 * r, -0.85 * r, 1.7 * r, 1.7 * r),
  (c, r) => polygon(c, 3, 1.2 * r, -Math.PI / 2),
  (c, r) => polygon(c, 4, 1.2 * r, 0),
  (c, r) => polygon(c, 3, 1.2 * r, Math.PI / 2),
  (c, r) => polygon(c, 5, 1.1 * r, -Math.PI / 2),
  (c, r) => polygon(c, 6, 1.1 * r, 0),
  (c, r) => star(c, 5, 1.3 * r),
  (c, r) => star(c, 4, 1.4 * r),
];

function polygon(context, corners, radius, turn) {
  for (let k = 0; k < corners; k++) {
    const angle = turn + (2 * Math.PI * k) / corners;
    context[k ? "lineTo" : "moveTo"](radius * Math.cos(angle), radius * Math.sin(angle));
  }
  context.closePath();
}

function star(context, points, radius) {
  for (let k = 0; k < 2 * points; k++) {
    const angle = -Math.PI / 2 + (Math.PI * k) / points, reach = k % 2 ? radius / 2 : radius;
    context[k ? "lineTo" : "moveTo"](reach * Math.cos(angle), reach * Math.sin(angle));
  }
  context.closePath();
}

// A point of a class, with a ring as wide as its weight among the support vectors (0 to 1).
export function drawPoint(context, x, y, label, { weight = 0, isBounded = false, isChosen = false, ink, paper }) {
  context.save();
  context.translate(x, y);
  if (isChosen) {
    context.beginPath();
    context.arc(0, 0, 17, 0, 2 * Math.PI);
    Object.assign(context, { strokeStyle: ink, lineWidth: 2.5 });
    context.stroke();
  }
  if (weight > 0) {
    context.beginPath();
    context.arc(0, 0, 7 + 6 * weight, 0, 2 * Math.PI);
    Object.assign(context, { strokeStyle: COLOURS[label], lineWidth: 2 });
    context.setLineDash(isBounded ? [3, 2.5] : []);
    context.stroke();
    context.setLineDash([]);
  }
  context.beginPath();
  SHAPES[label](context, 5);
  context.fillStyle = COLOURS[label];
  context.fill();
  Object.assign(context, { strokeStyle: paper, lineWidth: 1.25 });
  context.stroke();
  context.restore();
}

// Lines over steps, each on a scale of its own: [{ values, colour, label, isLog }].
export function drawChart(canvas, series, ink) {
  const { context, width, height } = prepared(canvas);
  context.font = "11px system-ui, sans-serif";
  series.forEach(({ values, colour, label, isLog }, number) => {
    const shown = values.map((v) => (isLog ? Math.log10(Math.max(v, 1e-12)) : v));
    const low = Math.min(...shown), high = Math.max(...shown), span = high - low || 1;
    context.strokeStyle = colour;
    context.lineWidth = 1.75;
    context.beginPath();
    shown.forEach((v, k) => {
      const x = shown.length > 1 ? 4 + ((width - 8) * k) / (shown.length - 1) : 4;
      const y = 20 + (height - 26) * (1 - (v - low) / span);
      context[k ? "lineTo" : "moveTo"](x, y);
    });
    context.stroke();
    if (shown.length) {
      context.fillStyle = colour;
      const text = `${label} ${short(values[values.length - 1])}`;
      context.textAlign = number ? "right" : "left";
      context.fillText(text, number ? width - 4 : 4, 12);
    }
  });
  if (!series[0].values.length) {
    context.fillStyle = ink;
    context.textAlign = "center";
    context.fillText("objective and violation appear here, step by step", width / 2, height / 2);
  }
}

export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}
