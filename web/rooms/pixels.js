/** Small images on canvases, in the page's colours. */

/** The red, green and blue of a custom property of the page's style. */
function colour(name) {
  const probe = new OffscreenCanvas(1, 1).getContext('2d');
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data.slice(0, 3);
}

/** Draws ink of 0..1 as an image with a pixel for each element. */
export function drawInk(canvas, pixels, width = 8, height = pixels.length / width) {
  const ink = colour('--ink');
  drawColoured(canvas, pixels, width, height, (value) => [
    ...ink,
    255 * Math.min(1, Math.max(0, value)),
  ]);
}

/** Draws values by sign: blue above zero, orange below, stronger farther from zero. */
export function drawSigned(canvas, values, width, height = values.length / width) {
  const most = values.reduce((a, v) => Math.max(a, Math.abs(v)), 0) || 1;
  const [above, below] = [colour('--value'), colour('--grad')];
  drawColoured(canvas, values, width, height, (value) => [
    ...(value > 0 ? above : below),
    (255 * Math.abs(value)) / most,
  ]);
}

function drawColoured(canvas, values, width, height, rgba) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const pen = canvas.getContext('2d');
  const image = pen.createImageData(width, height);
  values.forEach((value, i) => image.data.set(rgba(value), 4 * i));
  pen.putImageData(image, 0, 0);
}

/** Draws images of 8 x 8 weights, `columns` in a row, with a pixel between them. */
export function drawTiles(canvas, tiles, columns) {
  canvas.width = 9 * columns - 1;
  canvas.height = 9 * Math.ceil(tiles.length / columns) - 1;
  const pen = canvas.getContext('2d');
  tiles.forEach((tile, i) => {
    const small = new OffscreenCanvas(8, 8);
    drawSigned(small, tile, 8);
    pen.drawImage(small, 9 * (i % columns), 9 * Math.floor(i / columns));
  });
}
