/** A tensor as plain data, small enough to send and show: at most 32 rows of 32. */

const MOST = 32;

/** The version of a tensor; null for inference tensors, which have none. */
export const versionOf = (tensor) => (tensor.is_inference() ? null : tensor._version);

/** Shape, dtype, extremes, and the elements of the last two dimensions (at index 0 of all others).
 * @returns {{shape: number[], dtype: string, numel: number, rows: number, columns: number, values: number[], low: number, high:
 * number, mean: number, requires_grad: boolean, version: number | null}} */
export function summarise(tensor) {
  const { shape } = tensor;
  const flat = Array.from(tensor.toTypedArray(), Number);
  const width = shape.at(-1) ?? 1;
  const height = shape.length > 1 ? shape.at(-2) : 1;
  const [rows, columns] = [Math.min(height, MOST), Math.min(width, MOST)];
  const values = Array.from(
    { length: flat.length ? rows * columns : 0 },
    (_, i) => flat[width * Math.floor(i / columns) + (i % columns)],
  );
  let [low, high, sum] = [Infinity, -Infinity, 0];
  for (const value of flat) {
    low = Math.min(low, value);
    high = Math.max(high, value);
    sum += value;
  }
  return {
    shape,
    dtype: tensor.dtype.name,
    numel: flat.length,
    rows,
    columns,
    values,
    low,
    high,
    mean: sum / flat.length,
    requires_grad: tensor.requires_grad,
    version: versionOf(tensor),
  };
}

/** A number as a short text. */
export function brief(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1e6)
    return String(Object.is(value, -0) ? 0 : value);
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(4)));
}

/** A summary in a few characters: the number itself, a few numbers if they are short, or the shape. */
export function label(summary) {
  if (!summary) return 'none';
  const { values, numel, shape } = summary;
  if (numel === 1) return brief(values[0]);
  const numbers = numel <= 4 && shape.length === 1 ? `[${values.map(brief).join(', ')}]` : '';
  return numbers && numbers.length <= 18 ? numbers : `[${shape.join(' × ')}]`;
}
