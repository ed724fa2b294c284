/** A chart of lines over epochs: the lines are stretched, the labels are not. */

const SVG = 'http://www.w3.org/2000/svg';

/** An element with attributes and children; names of SVG elements give SVG. */
export function make(name, attributes = {}, ...children) {
  const isSvg = /^(svg|g|path|line|rect|circle|text|tspan|title|defs|marker|polyline)$/.test(name);
  const made = isSvg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Makes an empty chart of the `.chart` in `host`.
 * @param {HTMLElement} host
 * @param {{label: string, span: number, ticks: number[], at: (value: number) => number}} options `at`
 *   gives a value's height, 0 at the bottom and 1 at the top; `span` is the number of epochs
 * @returns {{line: (name: string, points: [number, number][]) => void}} `line` draws [epoch, value] pairs */
export function chart(host, { label, span, ticks, at }) {
  const svg = make('svg', {
    'viewBox': '0 0 1000 1000',
    'preserveAspectRatio': 'none',
    'role': 'img',
    'aria-label': label,
  });
  const left = make('div', { 'class': 'chart-left', 'aria-hidden': 'true' });
  const below = make('div', { 'class': 'chart-below', 'aria-hidden': 'true' });
  for (const tick of ticks) {
    const y = 1000 * (1 - at(tick));
    svg.append(make('line', { x1: 0, x2: 1000, y1: y, y2: y, class: 'grid' }));
    left.append(make('span', { style: `top:${y / 10}%` }, String(tick)));
  }
  for (let epoch = 0; epoch <= span; epoch += 5)
    below.append(make('span', { style: `left:${(100 * epoch) / span}%` }, String(epoch)));
  host.querySelector('.chart').append(left, svg, below);
  const clamp = (y) => Math.min(1, Math.max(0, y));
  return {
    line(name, points) {
      let path = svg.querySelector(`.${name}`);
      if (!path) svg.append((path = make('path', { class: name })));
      path.setAttribute(
        'd',
        points
          .map(
            ([x, y], i) =>
              `${i ? 'L' : 'M'}${((1000 * x) / span).toFixed(1)} ${(1000 * (1 - clamp(at(y)))).toFixed(1)}`,
          )
          .join(''),
      );
    },
  };
}
