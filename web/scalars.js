/** Arithmetic of numbers that may be tensors of one element, as in Python: a tensor keeps its dtype beside a number. */

/** @param {(value: any) => boolean} isTensor @returns {Record<string, (...values: any[]) => any>} */
export function makeScalars(isTensor) {
  const both = (ofTensor, reflected, ofNumbers) => (a, b) =>
    isTensor(a) ? ofTensor(a, b) : isTensor(b) ? reflected(b, a) : ofNumbers(a, b);
  const one = (ofTensor, ofNumber) => (a) => (isTensor(a) ? ofTensor(a) : ofNumber(a));
  const compare = (name, turned, ofNumbers) =>
    both(
      (a, b) => a[name](b).item(),
      (b, a) => b[turned](a).item(),
      ofNumbers,
    );
  const s = {
    add: both(
      (a, b) => a.add(b),
      (b, a) => b.add(a),
      (a, b) => a + b,
    ),
    sub: both(
      (a, b) => a.sub(b),
      (b, a) => b.neg().add(a),
      (a, b) => a - b,
    ),
    mul: both(
      (a, b) => a.mul(b),
      (b, a) => b.mul(a),
      (a, b) => a * b,
    ),
    div: both(
      (a, b) => a.div(b),
      (b, a) => b.reciprocal().mul(a),
      (a, b) => a / b,
    ),
    lt: compare('lt', 'gt', (a, b) => a < b),
    le: compare('le', 'ge', (a, b) => a <= b),
    gt: compare('gt', 'lt', (a, b) => a > b),
    ge: compare('ge', 'le', (a, b) => a >= b),
    abs: one((a) => a.abs(), Math.abs),
    neg: one(
      (a) => a.neg(),
      (a) => -a,
    ),
    sqrt: one((a) => a.sqrt(), Math.sqrt),
    value: one((a) => a.item(), Number),
  };
  return {
    ...s,
    square: (a) => (isTensor(a) ? a.pow(2) : a * a),
    min: (a, b) => (s.lt(b, a) ? b : a),
    max: (a, b) => (s.gt(b, a) ? b : a),
  };
}
