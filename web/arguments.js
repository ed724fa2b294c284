/** Binding of arguments: some in order, then the rest by name in an object of options.
 *
 * No argument is ignored: an unknown name, a name given twice, too many arguments and a value of a wrong type each raise a
 * TypeError, in Python's and PyTorch's words. */
import { signatures } from './signatures.js';

/** Options in order; an object of options may replace any of them. @template O @typedef {O | O[keyof O]} Given */

/** A complex number. @typedef {{readonly re: number, readonly im: number}} Complex */

const isPlain = (value) =>
  value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype;

/** Whether a value is a complex number: `{re: 1, im: -2}`. @returns {value is Complex} */
export const isComplex = (value) =>
  isPlain(value) && typeof value.re === 'number' && typeof value.im === 'number';

/** Whether a value is a trailing options object: `{dim: 1}`. */
export const isOptions = (value) => isPlain(value) && !isComplex(value);

/** One thing or several, as an array. */
export const each = (value) => (Array.isArray(value) ? value : [value]);

/** The name of a value's type in error messages: Python's name where there is one. */
export function typeName(value) {
  if (value === null || value === undefined) return 'NoneType';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float';
  if (Array.isArray(value)) return 'list';
  if (isComplex(value)) return 'complex';
  return (
    { string: 'str', boolean: 'bool', bigint: 'int', function: 'function', symbol: 'symbol' }[
      typeof value
    ] ??
    value.constructor?.name ??
    'object'
  );
}

/** Raises if there are more arguments than `most`; returns them. */
export function atMost(most, name, given) {
  if (given.length > most)
    throw new TypeError(
      `${name}() takes at most ${most} positional argument${most === 1 ? '' : 's'} but ${given.length} were given`,
    );
  return given;
}

const quoteNames = (names) =>
  names
    .map((name) => `'${name}'`)
    .join(names.length > 2 ? ', ' : ' and ')
    .replace(/, (?='[^']*'$)/, ', and ');

/** A call's arguments by name; undefined counts as not given.
 * @param {string} name of the function @param {string[]} names of its arguments @param {number} most the number of arguments that
 * may stand in order
 * @param {any[]} given @returns {Record<string, any>} */
function byName(name, names, most, given) {
  const [inOrder, options] = isOptions(given.at(-1))
    ? [given.slice(0, -1), given.at(-1)]
    : [given, {}];
  const bound = Object.create(null);
  atMost(most, name, inOrder).forEach((value, i) => {
    bound[names[i]] = value;
  });
  for (const key of Object.keys(options)) {
    if (!names.includes(key))
      throw new TypeError(`${name}() got an unexpected keyword argument '${key}'`);
    if (bound[key] !== undefined)
      throw new TypeError(`${name}() got multiple values for argument '${key}'`);
    bound[key] = options[key];
  }
  return bound;
}

const WORDS = { number: 'a number', boolean: 'bool', string: 'str' };

/** Options by name. @param {string} name of the function @param {Record<string, any>} defaults its options in order: a given value
 * must be of the default's type, unless the default is null; null selects the default
 * @param {any[]} given positional ones, then possibly an object @returns {Record<string, any>} */
export function bind(name, defaults, given) {
  if (!given.length) return defaults;
  const names = Object.keys(defaults);
  const bound = byName(name, names, names.length, given);
  const whole = {};
  for (const key of names) {
    const value = bound[key] ?? null,
      standard = defaults[key];
    if (value !== null && standard !== null && typeof value !== typeof standard)
      throw new TypeError(
        `${name}(): argument '${key}' must be ${WORDS[typeof standard] ?? typeName(standard)}, not ${typeName(value)}`,
      );
    whole[key] = value ?? standard;
  }
  return whole;
}

const areIntegers = (value) => Array.isArray(value) && value.every(Number.isSafeInteger);

/** Makes the function that binds a call's arguments to a signature of signatures.js, whose types it checks.
 * @param {Record<string, (value: any) => boolean>} more tests for the types of the library
 * @returns {(name: string, given: any[]) => Record<string, any>} by the signature's name, `Linear` or `Module.parameters` */
export function makeBinder(more) {
  const types = {
    'int': Number.isSafeInteger,
    'float': (value) => typeof value === 'number',
    'bool': (value) => typeof value === 'boolean',
    'str': (value) => typeof value === 'string',
    'int[]': (value) => Number.isSafeInteger(value) || areIntegers(value),
    'Sizes': (value) => [value].flat().every((each) => each === null || Number.isSafeInteger(each)),
    'Floats': (value) => [value].flat().every(types.float),
    'Pair': (value) => Array.isArray(value) && value.length === 2 && value.every(types.float),
    'PairOrNull': (value) => Array.isArray(value) && types.Pair([value[0] ?? 0, ...value.slice(1)]),
    'float[]': (value) => Array.isArray(value) && value.every(types.float),
    'Tensor[]': (value) => Array.isArray(value) && value.every(more.Tensor),
    'Device': (value) => typeof value === 'string',
    'Any': () => true,
    'Params': () => true,
    ...more,
  };
  const words = {
    'int[]': 'int or list of ints',
    'Sizes': 'int or list of ints',
    'Floats': 'float or list of floats',
    'Pair': 'list of 2 floats',
    'PairOrNull': 'list of 2 floats',
    'float[]': 'list of floats',
    'Tensor[]': 'list of Tensors',
    'Device': 'torch.device',
    'ScalarType': 'torch.dtype',
  };
  const fits = (type, value) =>
    value === null
      ? type.endsWith('?') || type === 'Params'
      : type
          .replace('?', '')
          .split('|')
          .some((kind) => types[kind](value));

  const standards = new Map(); // bindings of calls without arguments

  return function take(which, given) {
    if (!given.length && standards.has(which)) return standards.get(which);
    const signature = signatures[which];
    const name = which.slice(which.lastIndexOf('.') + 1);
    const names = Object.keys(signature);
    const bound = byName(
      name,
      names,
      names.filter((key) => signature[key][2] !== 'named').length,
      given,
    );
    const missing = names.filter((key) => signature[key].length === 1 && bound[key] === undefined);
    if (missing.length)
      throw new TypeError(
        `${name}() missing ${missing.length} required positional argument${missing.length > 1 ? 's' : ''}: ${quoteNames(missing)}`,
      );
    const taken = Object.fromEntries(
      names.map((key, i) => {
        const [type, standard] = signature[key];
        if (bound[key] === undefined)
          return [key, Array.isArray(standard) ? [...standard] : standard];
        const value = bound[key];
        if (fits(type, value)) return [key, value];
        const wanted = type
          .replace('?', '')
          .split('|')
          .map((kind) => words[kind] ?? kind)
          .join(' or ');
        throw new TypeError(
          `${name}(): argument '${key}' (position ${i + 1}) must be ${wanted}, not ${typeName(value)}`,
        );
      }),
    );
    if (!given.length) standards.set(which, Object.freeze(taken));
    return taken;
  };
}
