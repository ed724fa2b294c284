/** A small editor: a text area over its coloured text, with line numbers and marks. */
import { make } from '../chart.js';

const TOKENS = new RegExp(
  [
    String.raw`(?<comment>\/\/[^\n]*|\/\*[^]*?(?:\*\/|$))`,
    String.raw`(?<string>'(?:[^'\\\n]|\\.)*'?|"(?:[^"\\\n]|\\.)*"?|` + '`(?:[^`\\\\]|\\\\.)*`?)',
    String.raw`(?<word>\b(?:const|let|var|function|class|extends|static|return|for|of|in|while|if|else|new|null|true|false|this|super|throw|try|catch)\b)`,
    String.raw`(?<number>\b\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?n?\b)`,
  ].join('|'),
  'g',
);

/** The text as spans, line by line. */
function paint(source) {
  const lines = [make('span', { class: 'line' })];
  const add = (text, kind) =>
    text.split('\n').forEach((part, i) => {
      if (i) lines.push(make('span', { class: 'line' }));
      if (part) lines.at(-1).append(kind ? make('span', { class: kind }, part) : part);
    });
  let from = 0;
  for (const match of source.matchAll(TOKENS)) {
    add(source.slice(from, match.index));
    add(
      match[0],
      Object.keys(match.groups).find((kind) => match.groups[kind] !== undefined),
    );
    from = match.index + match[0].length;
  }
  add(source.slice(from));
  return lines;
}

/** Makes an editor in `host`.
 * @param {HTMLElement} host
 * @param {{onChange: () => void, run: () => void, onLine: (line: number) => void}} callbacks `onLine` gets the caret's line
 * @returns {{value: string, mark: (kind: string, line: number | null) => void}} `mark` puts a class on one line */
export function makeEditor(host, { onChange, run, onLine }) {
  const painted = make('pre', { 'class': 'paint', 'aria-hidden': 'true' });
  const area = make('textarea', {
    'id': 'graph-source',
    'spellcheck': 'false',
    'autocapitalize': 'off',
    'autocomplete': 'off',
    'wrap': 'off',
    'aria-label': 'The program. Control and Enter runs it.',
    'aria-describedby': 'graph-output',
  });
  host.append(make('div', { class: 'sheet' }, painted, area));
  const marks = new Map();

  function repaint() {
    const lines = paint(area.value);
    for (const [kind, line] of marks) lines[line - 1]?.classList.add(kind);
    painted.replaceChildren(...lines);
  }

  area.oninput = () => {
    marks.clear();
    repaint();
    onChange();
  };
  area.onkeydown = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  };

  document.addEventListener('selectionchange', () => {
    if (document.activeElement === area)
      onLine(area.value.slice(0, area.selectionStart).split('\n').length);
  });

  return {
    get value() {
      return area.value;
    },
    set value(source) {
      area.value = source;
      marks.clear();
      repaint();
    },
    mark(kind, line) {
      if (marks.get(kind) === (line ?? undefined)) return;
      if (line) marks.set(kind, line);
      else marks.delete(kind);
      repaint();
    },
  };
}
