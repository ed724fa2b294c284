/** The line search of L-BFGS by the strong Wolfe conditions (Nocedal and Wright). It is Python's, operation by operation.
 *
 * A point is a length along the direction, with the loss, gradient and slope at it. `s` is the arithmetic of scalars.js. */

const ENOUGH = 1e-4,
  FLAT = 0.9,
  LEAST = 1e-9;

const isTooHigh = (s, point, here) =>
  s.gt(point.loss, s.add(here.loss, s.mul(s.mul(ENOUGH, point.length), here.slope)));
const isFlat = (s, point, here) => s.le(s.abs(point.slope), s.mul(-FLAT, here.slope));

/** The minimum of the cubic through two points with their slopes, within bounds. */
function cubic(s, a, b, bounds) {
  const [low, high] = bounds ?? [s.min(a.length, b.length), s.max(a.length, b.length)];
  const [left, right] = s.le(a.length, b.length) ? [a, b] : [b, a];
  const chord = s.div(3 * (a.loss - b.loss), s.sub(a.length, b.length));
  const d1 = s.sub(s.add(a.slope, b.slope), chord);
  const square = s.sub(s.square(d1), s.mul(a.slope, b.slope));
  if (s.lt(square, 0)) return s.div(s.add(low, high), 2);
  const d2 = s.sqrt(square);
  const share = s.div(
    s.sub(s.add(right.slope, d2), d1),
    s.add(s.sub(right.slope, left.slope), s.mul(2, d2)),
  );
  const found = s.sub(right.length, s.mul(s.sub(right.length, left.length), share));
  return s.min(s.max(found, low), high);
}

/** The next length to try in a bracket, and whether it is close to an end. If the last one was close too (`stuck`), it is moved
 * away from the end. */
function nextLength(s, bracket, stuck) {
  const length = cubic(s, bracket[0], bracket[1]);
  const lengths = bracket.map((point) => point.length);
  const [top, bottom] = [s.max(lengths[0], lengths[1]), s.min(lengths[0], lengths[1])];
  const margin = s.mul(0.1, s.sub(top, bottom));
  const close = s.lt(s.min(s.sub(top, length), s.sub(length, bottom)), margin);
  if (close && (stuck || s.ge(length, top) || s.le(length, bottom))) {
    const isNearerTop = s.lt(s.abs(s.sub(length, top)), s.abs(s.sub(length, bottom)));
    return [isNearerTop ? s.sub(top, margin) : s.add(bottom, margin), false];
  }
  return [length, close];
}

const lower = (bracket) => (bracket[0].loss <= bracket[1].loss ? 0 : 1);

/** Narrows a bracket to a point that meets the conditions; else its end of lower loss. */
function zoom(s, evaluate, here, bracket, largest, most) {
  let [looked, stuck, done, low] = [0, false, false, lower(bracket)];
  while (!done && looked < most) {
    const width = s.abs(s.sub(bracket[1].length, bracket[0].length));
    if (s.lt(s.mul(width, largest), LEAST)) break;
    let length;
    [length, stuck] = nextLength(s, bracket, stuck);
    const point = evaluate(length);
    looked++;
    if (isTooHigh(s, point, here) || point.loss >= bracket[low].loss) {
      bracket[1 - low] = point;
      low = lower(bracket);
      continue;
    }
    if (isFlat(s, point, here)) done = true;
    else {
      const across = s.sub(bracket[1 - low].length, bracket[low].length);
      if (s.ge(s.mul(point.slope, across), 0)) bracket[1 - low] = bracket[low];
    }
    bracket[low] = point;
  }
  return [bracket[low], looked];
}

/** A point that meets the conditions, and the number of points tried. */
export function search(s, evaluate, here, length, largest, most) {
  let [last, point, looked, turns, bracket] = [here, evaluate(length), 1, 0, null];
  while (turns < most) {
    const rises = isTooHigh(s, point, here) || (turns > 1 && point.loss >= last.loss);
    if (!rises && isFlat(s, point, here)) return [point, looked];
    if (rises || s.ge(point.slope, 0)) {
      bracket = [last, point];
      break;
    }
    const least = s.add(point.length, s.mul(0.01, s.sub(point.length, last.length)));
    const next = cubic(s, last, point, [least, s.mul(point.length, 10)]);
    [last, point] = [point, evaluate(next)];
    looked++;
    turns++;
  }
  const found = zoom(s, evaluate, here, bracket ?? [here, point], largest, most - turns);
  return [found[0], looked + found[1]];
}
