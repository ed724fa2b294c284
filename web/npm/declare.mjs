/**
 * TypeScript declarations of the JavaScript front: `node web/npm/declare.mjs FILE` writes index.d.ts.
 *
 * The types are those of the JSDoc beside each function, word for word; what the op table gives is in
 * ops.d.ts. A public name whose type nobody wrote down and nobody can infer is an error.
 */
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const ts = createRequire(new URL('../../build/node/', import.meta.url))('typescript'); // `make types` installs it

const ENTRY = fileURLToPath(new URL('../index.js', import.meta.url));
const OPTIONS = {
  allowJs: true,
  strict: true,
  noImplicitAny: false,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
};
const HEAD = `// Made from the JSDoc of the modules and, by way of ops.d.ts, from the op table.
import type { Aten, Fft, Functional, Functions, Linalg, Masked, MemoryFormat, Methods, Properties, Scalar, Special, Windows } from './ops.js';
import type { Layers } from './nn/layers.js';
export type * from './nn/layers.js';

/** An interface without some of its names, which are declared anew. */
type Without<Type, Names> = { [Name in keyof Type as Name extends Names ? never : Name]: Type[Name] };
`;

const program = ts.createProgram([ENTRY], OPTIONS);
const checker = program.getTypeChecker();
const sources = program.getSourceFiles().filter((file) => !file.isDeclarationFile);
const complaints = [];

// ---------------------------------------------------------------- what stands in the JSDoc

const plain = (text) => text.replace(/import\('[^']*'\)\./g, '').replace(/\s*\n\s*\*?\s*/g, ' ');
const isOneWord = (type) => ts.isParenthesizedTypeNode(type) || /^\w+$/.test(type.getText());
const listOf = (type) => (isOneWord(type) ? `${type.getText()}[]` : `(${type.getText()})[]`);
const textOf = (node) =>
  node && plain(ts.isJSDocVariadicType(node) ? listOf(node.type) : node.getText());
const inferType = (type) =>
  plain(checker.typeToString(type, undefined, ts.TypeFormatFlags.NoTruncation));
const hasTag = (node, name) => ts.getJSDocTags(node).some((tag) => tag.tagName.text === name);

/** The comment above a declaration, if it says anything. */
function comment(node, indent) {
  const docs = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  const text = ts.getTextOfJSDocComment(docs.at(-1)?.comment)?.trim();
  return text ? `${indent}/** ${text.replace(/\n/g, `\n${indent} * `)} */\n` : '';
}

/** A type, or a complaint that there is none. */
function requireType(text, type, where) {
  const shown = text ?? inferType(type);
  if (text === undefined && /\bany\b|\[name\]/.test(shown)) complaints.push(`${where} has no type`);
  return shown;
}

/** `<A extends B, C>` of @template tags; a constraint is that of the tag's first name. */
function generics(tags) {
  const shown = tags
    .filter(ts.isJSDocTemplateTag)
    .flatMap((tag) =>
      tag.typeParameters.map((p, i) =>
        tag.constraint && i === 0
          ? `${p.name.text} extends ${textOf(tag.constraint.type)}`
          : p.name.text,
      ),
    );
  return shown.length ? `<${shown.join(', ')}>` : '';
}

function parameter(node, where) {
  const [tag] = ts.getJSDocParameterTags(node);
  const name = ts.isIdentifier(node.name) ? node.name.text : (tag?.name.getText() ?? 'options');
  const rest = node.dotDotDotToken ? '...' : '';
  const optional = !rest && (tag?.isBracketed || node.initializer) ? '?' : '';
  return `${rest}${name}${optional}: ${requireType(textOf(tag?.typeExpression?.type), checker.getTypeAtLocation(node), `${where}(${name})`)}`;
}

/** A parameter of a function that takes what others like it take, and reads nothing of it. */
const unread = (tag) =>
  `${ts.isJSDocVariadicType(tag.typeExpression.type) ? '...' : ''}${tag.name.getText()}: ${textOf(tag.typeExpression.type)}`;

/** `(a: A, b?: B): R` of a function with JSDoc. */
function signature(fn, where, { isConstructor = false, isSetter = false } = {}) {
  const tags = ts.getJSDocTags(fn);
  const parameters = fn.parameters.length
    ? fn.parameters.map((node) => parameter(node, where))
    : tags.filter(ts.isJSDocParameterTag).map(unread);
  const head = `${generics(tags)}(${parameters.join(', ')})`;
  if (isConstructor || isSetter) return head;
  const returned = checker.getSignatureFromDeclaration(fn).getReturnType();
  return `${head}: ${requireType(textOf(ts.getJSDocReturnType(fn)), returned, `${where}()`)}`;
}

// ---------------------------------------------------------------- objects

/** Where a property's value was declared: through shorthands, destructuring and other objects. */
function origin(symbol) {
  const node = symbol.valueDeclaration ?? symbol.declarations?.[0];
  if (!node) return undefined;
  if (ts.isPropertyAssignment(node) && ts.getJSDocType(node)) return node;
  let next;
  if (ts.isShorthandPropertyAssignment(node))
    next = checker.getShorthandAssignmentValueSymbol(node);
  else if (
    ts.isPropertyAssignment(node) &&
    (ts.isIdentifier(node.initializer) || ts.isPropertyAccessExpression(node.initializer))
  )
    next = checker.getSymbolAtLocation(node.initializer.name ?? node.initializer);
  else if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent))
    next = checker
      .getTypeAtLocation(node.parent)
      .getProperty((node.propertyName ?? node.name).text);
  if (next && next.flags & ts.SymbolFlags.Alias) next = checker.getAliasedSymbol(next);
  return next?.declarations?.length ? origin(next) : node;
}

/** One property of an object: `name: type;` or `name(a: A): R;`. */
function property(symbol, where, indent) {
  const node = origin(symbol);
  const type = checker.getTypeOfSymbol(symbol);
  if (!node) return `${indent}${symbol.name}: ${inferType(type)};`;
  const name = /^[\w$]+$/.test(symbol.name) ? symbol.name : JSON.stringify(symbol.name);
  const head = `${comment(node, indent)}${indent}`;
  const fn = [node, node.initializer].find((n) => n && ts.isFunctionLike(n));
  const annotated = textOf(ts.getJSDocType(node));
  if (annotated) return `${head}${name}: ${annotated};`;
  if (node.getSourceFile().isDeclarationFile && ts.isInterfaceDeclaration(node.parent))
    return `${indent}${name}: ${node.parent.name.text}['${symbol.name}'];`;
  if (fn) return `${head}${name}${signature(fn, `${where}.${name}`)};`;
  const made = [node, type.symbol?.valueDeclaration].find((n) => n && ts.isClassLike(n) && n.name);
  if (made) return `${indent}${name}: typeof ${made.name.text};`;
  if (ts.isSourceFile(node)) return `${indent}${name}: ${errorsOf(type, indent)};`;
  if (node.initializer && ts.isObjectLiteralExpression(node.initializer))
    return `${head}${name}: ${object(type, `${where}.${name}`, indent)};`;
  if (node.initializer && ts.isCallExpression(node.initializer)) {
    const maker = checker.getResolvedSignature(node.initializer).declaration;
    const returned = textOf(maker && ts.getJSDocReturnType(maker));
    if (returned) return `${head}${name}: ${returned};`;
    if (type.getProperties().length && !type.getCallSignatures().length)
      return `${head}${name}: ${object(type, `${where}.${name}`, indent)};`;
  }
  return `${head}${name}: ${requireType(undefined, type, `${where}.${name}`)};`;
}

const isPublic = (symbol) => !/^_|^#|^prototype$|^__/.test(symbol.name);
const object = (type, where, indent) =>
  `{\n${type
    .getProperties()
    .filter(isPublic)
    .map((p) => property(p, where, `${indent}  `))
    .join('\n')}\n${indent}}`;

/** Of a module: the classes of its errors. */
function errorsOf(type, indent) {
  const names = type.getProperties().filter((p) => {
    const made = checker.getTypeOfSymbol(p).getConstructSignatures()[0]?.getReturnType();
    return made?.getProperty('message') && made.getProperty('stack');
  });
  return `{\n${names.map((p) => `${indent}  ${p.name}: new (message?: string) => Error;`).join('\n')}\n${indent}}`;
}

// ---------------------------------------------------------------- classes

function member(node, where) {
  if (node.name && ts.isPrivateIdentifier(node.name)) return '';
  if (hasTag(node, 'private'))
    return ts.isConstructorDeclaration(node) ? '  protected constructor(...args: any[]);' : '';
  const name = node.name?.getText() ?? 'constructor';
  if (name.startsWith('[') && name !== '[Symbol.iterator]') return '';
  const flags = ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Static ? 'static ' : '';
  const head = `${comment(node, '  ')}  ${flags}`;
  const at = `${where}.${name}`;
  if (ts.isConstructorDeclaration(node))
    return `${head}constructor${signature(node, at, { isConstructor: true })};`;
  if (ts.isGetAccessor(node)) {
    const returned = checker.getTypeAtLocation(node);
    return `${head}get ${name}(): ${requireType(textOf(ts.getJSDocReturnType(node) ?? ts.getJSDocType(node)), returned, at)};`;
  }
  if (ts.isSetAccessor(node))
    return `${head}set ${name}${signature(node, at, { isSetter: true })};`;
  const annotated = textOf(ts.getJSDocType(node));
  if (annotated) return `${head}${name}: ${annotated};`;
  if (ts.isMethodDeclaration(node)) return `${head}${name}${signature(node, at)};`;
  if (!ts.isPropertyDeclaration(node)) return '';
  return `${head}${name}: ${requireType(undefined, checker.getTypeAtLocation(node), at)};`;
}

/** Fields that a constructor assigns: those with a type. */
function assignedFields(node) {
  const instance = checker.getTypeAtLocation(node);
  const written = new Set(node.members.map((m) => m.name?.getText()));
  const own = instance.getProperties().filter((p) => {
    const at = p.valueDeclaration;
    return (
      at &&
      !ts.isClassElement(at) &&
      isPublic(p) &&
      !written.has(p.name) &&
      at.getSourceFile() === node.getSourceFile() &&
      at.pos >= node.pos &&
      at.end <= node.end &&
      !hasTag(at.parent, 'private')
    );
  });
  return own.map((p) => {
    const statement = p.valueDeclaration.parent;
    const type = textOf(ts.getJSDocType(statement)) ?? inferType(checker.getTypeOfSymbol(p));
    return type === 'any' ? '' : `${comment(statement, '  ')}  ${p.name}: ${type};`;
  });
}

/** What a class extends: the type of its @extends tag, a class by name, or Error for a class of errors. */
function baseOf(node) {
  const tag = ts.getJSDocAugmentsTag(node);
  if (tag) return plain(tag.class.getText());
  const base = ts.getClassExtendsHeritageElement(node)?.expression.getText();
  return base && !declarations.has(base) ? 'Error' : base;
}

function classOf(node) {
  const name = node.name.text;
  const base = baseOf(node);
  const lines = [...assignedFields(node), ...node.members.map((m) => member(m, name))].filter(
    Boolean,
  );
  const parts = [
    `${comment(node, '')}declare class ${name}${generics(ts.getJSDocTags(node))}${base ? ` extends ${base}` : ''} {\n${lines.join('\n')}\n}`,
  ];
  const own = node.members.map((m) => m.name?.getText()).filter((n) => /^\w+$/.test(n ?? ''));
  if (name === 'Tensor')
    parts.push(`interface Tensor extends Without<Methods, ${names(own)}>, Properties {}`);
  for (const tag of ts.getJSDocImplementsTags(node))
    parts.push(`interface ${name} extends ${plain(tag.class.getText())} {}`);
  return parts.join('\n');
}

const names = (list) => [...new Set(list)].map((name) => `'${name}'`).join(' | ');

/** A typedef word for word; of the type of a constant, what that is. */
function alias(tag, tags) {
  const { type } = tag.typeExpression;
  const text = /\btypeof\b/.test(type.getText())
    ? inferType(checker.getTypeFromTypeNode(type))
    : textOf(type);
  return `type ${tag.name.text}${generics(tags)} = ${text};`;
}

/** Interfaces that are declared already, of layers. */
const declared = new Set(
  program
    .getSourceFile(fileURLToPath(new URL('../nn/layers.d.ts', import.meta.url)))
    .statements.filter(ts.isInterfaceDeclaration)
    .map((node) => node.name.text),
);

/** Classes and typedefs of all modules, by name. */
function collectDeclarations() {
  const found = new Map();
  const visit = (node) => {
    if (ts.isClassLike(node) && node.name && !declared.has(node.name.text))
      found.set(node.name.text, () => classOf(node));
    for (const doc of node.jsDoc ?? [])
      for (const tag of (doc.tags ?? []).filter(ts.isJSDocTypedefTag))
        found.get(tag.name.text) ?? found.set(tag.name.text, () => alias(tag, doc.tags));
    ts.forEachChild(node, visit);
  };
  sources.forEach(visit);
  return found;
}

const declarations = collectDeclarations();

// ---------------------------------------------------------------- the file

function library() {
  const entry = checker.getSymbolAtLocation(program.getSourceFile(ENTRY));
  const load = checker.getExportsOfModule(entry).find((symbol) => symbol.name === 'load');
  const fn = load.valueDeclaration;
  const type = checker.getAwaitedType(checker.getSignatureFromDeclaration(fn).getReturnType());
  const own = type.getProperties().filter(isPublic);
  return [
    `/** A library over an engine of its own. */\nexport interface Torch extends Without<Functions, ${names(own.map((p) => p.name))}> ${object(type, 'torch', '')}`,
    `${comment(fn, '')}export function load${signature(fn, 'load', { isConstructor: true })}: Promise<Torch>;`,
  ];
}

function whole() {
  const parts = library();
  const taken = new Set();
  for (let again = true; again; ) {
    again = false;
    const text = parts.join('\n');
    for (const [name, print] of declarations) {
      if (taken.has(name) || !(name === 'Tensor' || new RegExp(`[^'.\\w]${name}\\b`).test(text)))
        continue;
      taken.add(name);
      parts.push(print());
      again = true;
    }
  }
  return `${HEAD}\n${parts.join('\n\n')}\n\nexport type { ${[...taken].sort().join(', ')} };\n`;
}

const text = whole();
if (complaints.length) {
  console.error(complaints.map((each) => `web: ${each}: say it in its JSDoc`).join('\n'));
  process.exit(1);
}
await writeFile(process.argv[2], text);
