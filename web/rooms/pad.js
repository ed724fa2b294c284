/** The pad: strokes of a pen, and their reduction to 8 x 8 pixels as in the data set. */

const SIZE = 288;
const PEN = 24;
const STEP = 12;

/** The ink of a drawing, reduced as the data set's digits: its box fitted into 32 x 32 bits, counted by blocks of 4 x 4. @param
 * {HTMLCanvasElement} canvas @returns {number[] | null} 64 shares of ink, null if blank */
function reduce(canvas) {
  const { data } = canvas.getContext('2d').getImageData(0, 0, SIZE, SIZE);
  let [left, top, right, bottom] = [SIZE, SIZE, -1, -1];
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      if (data[4 * (SIZE * y + x) + 3] < 128) continue;
      [left, right, top, bottom] = [
        Math.min(left, x),
        Math.max(right, x),
        Math.min(top, y),
        Math.max(bottom, y),
      ];
    }
  }
  if (right < 0) return null;
  const [width, height] = [right - left + 1, bottom - top + 1];
  const scale = 31 / Math.max(width, height);
  const small = new OffscreenCanvas(32, 32).getContext('2d');
  small.imageSmoothingQuality = 'high';
  small.drawImage(
    canvas,
    left,
    top,
    width,
    height,
    (32 - width * scale) / 2,
    (32 - height * scale) / 2,
    width * scale,
    height * scale,
  );
  const bits = small.getImageData(0, 0, 32, 32).data;
  const blocks = new Array(64).fill(0);
  for (let i = 0; i < 1024; i++)
    if (bits[4 * i + 3] > 110) blocks[8 * (i >> 7) + ((i & 31) >> 2)] += 1 / 16;
  return blocks;
}

/** Makes a canvas a pad. @param {HTMLCanvasElement} canvas
 * @param {(pixels: number[] | null) => void} onChange called after each stroke
 * @returns {{clear: () => void, put: (pixels: number[]) => void, redraw: () => void}} */
export function makePad(canvas, onChange) {
  const pen = canvas.getContext('2d', { willReadFrequently: true });
  let strokes = []; // lists of points, or a list of 64 pixels given to `put`
  let hand = null; // the keyboard's pen: {x, y, down}
  const ink = () => getComputedStyle(canvas).color;

  function draw({ marks = true } = {}) {
    pen.clearRect(0, 0, SIZE, SIZE);
    Object.assign(pen, {
      lineWidth: PEN,
      lineCap: 'round',
      lineJoin: 'round',
      strokeStyle: ink(),
      fillStyle: ink(),
    });
    for (const points of strokes) {
      pen.beginPath();
      points.forEach(([x, y]) => pen.lineTo(x, y));
      pen.lineTo(points[0][0] + 0.01, points[0][1]);
      if (points.length > 1) {
        pen.beginPath();
        points.forEach(([x, y]) => pen.lineTo(x, y));
      }
      pen.stroke();
    }
    if (!hand || !marks) return;
    pen.lineWidth = 3;
    pen.beginPath();
    pen.arc(hand.x, hand.y, hand.down ? 6 : 13, 0, 7);
    pen.stroke();
  }

  function finish() {
    draw({ marks: false });
    const pixels = reduce(canvas);
    draw();
    onChange(pixels);
  }

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [
      (SIZE * (event.clientX - box.left)) / box.width,
      (SIZE * (event.clientY - box.top)) / box.height,
    ];
  };
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    hand = null;
    strokes.push([place(event)]);
    draw();
  };
  canvas.onpointermove = (event) => {
    if (!event.buttons || !canvas.hasPointerCapture(event.pointerId)) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) strokes.at(-1).push(place(each));
    draw();
  };
  canvas.onpointerup = finish;

  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const clear = () => {
    strokes = [];
    finish();
  };
  canvas.onkeydown = (event) => {
    if (event.key === 'Delete' || event.key === 'Backspace') clear();
    else if (event.key === ' ') {
      hand = { x: SIZE / 2, y: SIZE / 2, ...hand, down: !hand?.down };
      if (hand.down) strokes.push([[hand.x, hand.y]]);
      finish();
    } else if (event.key in moves) {
      const [dx, dy] = moves[event.key];
      const clamp = (v) => Math.min(SIZE - PEN, Math.max(PEN, v));
      hand ??= { x: SIZE / 2, y: SIZE / 2, down: false };
      Object.assign(hand, { x: clamp(hand.x + STEP * dx), y: clamp(hand.y + STEP * dy) });
      if (!hand.down) return event.preventDefault() ?? draw();
      strokes.at(-1).push([hand.x, hand.y]);
      finish();
    } else return;
    event.preventDefault();
  };
  canvas.onblur = () => {
    hand = null;
    draw();
  };

  return {
    clear,
    redraw: draw,
    /** Shows an image instead of the drawing. */
    put(pixels) {
      strokes = [];
      draw();
      const side = SIZE / 8;
      pixels.forEach((value, i) => {
        pen.globalAlpha = value;
        pen.fillRect(side * (i % 8), side * Math.floor(i / 8), side, side);
      });
      pen.globalAlpha = 1;
      onChange(pixels);
    },
  };
}
