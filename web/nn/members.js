/** The registered members of modules: parameters, buffers and submodules, by name and in order; and walks over trees of modules. */

/** Kinds of members. */
export const PARAMETER = 'parameter',
  BUFFER = 'buffer',
  TRANSIENT = 'buffer that is not saved',
  MODULE = 'module';
/** The key of a module's object without its proxy, and of the kinds of its registered names, in order. */
export const SELF = Symbol('self');

/** Sets the kind of a name; a name whose kind changes moves to the end. */
export function note(kinds, name, kind) {
  if (kinds.get(name) === kind) return;
  kinds.delete(name);
  if (kind !== undefined) kinds.set(name, kind);
}

/** [name, value] of a module's own members of some kinds, without nulls. */
export function members(module, ...wanted) {
  const { fields, kinds } = module[SELF];
  const found = [];
  for (const [name, kind] of kinds)
    if (wanted.includes(kind) && (fields[name] ?? null) !== null) found.push([name, fields[name]]);
  return found;
}

/** The saved members in PyTorch's order: parameters, then buffers. */
export const savedMembers = (module) => [...members(module, PARAMETER), ...members(module, BUFFER)];
export const joinPath = (prefix, name) => (prefix ? `${prefix}.${name}` : name);

/** [name, module] of a tree, parents first, without modules in `seen`; with `isSet`, each module is added to `seen`, and so comes
 * once. */
export function* walk(module, prefix, seen, isSet = true) {
  if (seen.has(module)) return;
  if (isSet) seen.add(module);
  yield [prefix, module];
  for (const [name, child] of members(module, MODULE))
    yield* walk(child, joinPath(prefix, name), seen, isSet);
}

/** [name, tensor] of all tensors of some kinds, each once if remove_duplicate. */
export function tensorsOf(module, kinds, { prefix, recurse, remove_duplicate }) {
  const owners = recurse ? walk(module, prefix, new Set(), remove_duplicate) : [[prefix, module]];
  const seen = new Set();
  const found = [];
  for (const [path, owner] of owners) {
    for (const [name, tensor] of members(owner, ...kinds)) {
      if (seen.has(tensor)) continue;
      if (remove_duplicate) seen.add(tensor);
      found.push([joinPath(path, name), tensor]);
    }
  }
  return found;
}
