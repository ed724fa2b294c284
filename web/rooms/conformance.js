/** The Conformance room: the matrix of ops, modes and dtypes, filled by the worker. */
import { link } from './link.js';

const SHORT = {
  float64: 'f64',
  float32: 'f32',
  int64: 'i64',
  int32: 'i32',
  int16: 'i16',
  int8: 'i8',
  uint8: 'u8',
  bool: 'bool',
  float16: 'f16',
  bfloat16: 'bf16',
  complex64: 'c64',
  complex128: 'c128',
};
const BRIEF = { 'backward': 'bwd', 'second order': '2nd' };
const WORDS = {
  '': 'no such case',
  'same': 'as PyTorch',
  'error': 'the errors that PyTorch raises',
  'open': 'nothing to compare with',
  'differs': 'differs from PyTorch',
};
const $ = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString('en');

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Two head rows: the modes over their dtypes. */
function head(columns) {
  const modes = new Map();
  for (const [mode] of columns) modes.set(mode, (modes.get(mode) ?? 0) + 1);
  $('conformance-head').replaceChildren(
    element(
      'tr',
      {},
      element('th', { scope: 'col', rowspan: 2 }, 'Op'),
      ...Array.from(modes, ([mode, span]) =>
        element(
          'th',
          { 'scope': 'colgroup', 'colspan': span, 'title': mode, 'aria-label': mode },
          BRIEF[mode] ?? mode,
        ),
      ),
    ),
    element(
      'tr',
      {},
      ...columns.map(([mode, dtype], i) => {
        const first = i === 0 || columns[i - 1][0] !== mode;
        return element(
          'th',
          { scope: 'col', ...(first && { class: 'first' }) },
          element('span', {}, SHORT[dtype]),
        );
      }),
    ),
  );
}

/** A row for each op, with empty cells. */
function body(ops, columns) {
  const cells = columns
    .map(([mode], i) => `<td${i === 0 || columns[i - 1][0] !== mode ? ' class="first"' : ''}></td>`)
    .join('');
  $('conformance-rows').innerHTML = ops
    .map(() => `<tr><th scope="row"><button type="button"></button></th>${cells}</tr>`)
    .join('');
  Array.from($('conformance-rows').rows).forEach((row, i) => {
    Object.assign(row.cells[0].firstChild, { textContent: ops[i], title: ops[i] });
  });
}

/** @param {HTMLElement} section @param {import('./page.js').Shell} shell @returns {() => Promise<void>} opens the room */
export function mount(section, shell) {
  const showError = (error) => shell.fail(error.message);
  const totals = {};
  let found = []; // the cells and the time of each op
  let facts = null;
  let began = 0;
  let busy = false;
  let asked = 0; // the number of the requested details

  const worker = link(new URL('conformance.worker.js', import.meta.url), {
    rows(rows) {
      rows.forEach(fill);
      figures();
      shell.well();
    },
  });

  function fill([number, cells, milliseconds]) {
    const row = $('conformance-rows').rows[number];
    found[number] = { cells, milliseconds };
    let wrong = 0;
    cells.forEach(({ kind, count: cases, wrong: bad, compared }, i) => {
      row.cells[i + 1].dataset.kind = kind;
      totals.done += cases;
      totals.same += compared - bad;
      totals.open += cases - compared;
      wrong += bad;
    });
    totals.differ += wrong;
    totals.ops++;
    row.className = wrong ? 'differs' : '';
    row.cells[0].firstChild.setAttribute(
      'aria-label',
      `${facts.ops[number]}: ${wrong ? `${wrong} cases differ` : 'as PyTorch'}`,
    );
  }

  function figures() {
    $('conformance-done').textContent = `${count(totals.done)} / ${count(facts.cases)}`;
    $('conformance-same').textContent = count(totals.same);
    $('conformance-differ').textContent = count(totals.differ);
    $('conformance-differ').className = totals.differ ? 'bad' : totals.done ? 'good' : '';
    $('conformance-open').textContent = count(totals.open);
    $('conformance-time').textContent = `${((performance.now() - began) / 1000).toFixed(1)} s`;
    $('conformance-progress').value = totals.done / facts.cases;
  }

  async function toggle() {
    if (busy) return worker.ask('stop');
    busy = true;
    found = [];
    Object.assign(totals, { done: 0, same: 0, differ: 0, open: 0, ops: 0 });
    for (const cell of $('conformance-rows').querySelectorAll('td[data-kind]'))
      cell.removeAttribute('data-kind');
    $('conformance-go').textContent = 'Cancel';
    $('conformance-verdict').textContent = 'Running …';
    $('conformance-verdict').className = '';
    began = performance.now();
    try {
      verdict(await worker.ask('sweep'));
    } catch (error) {
      showError(error);
      $('conformance-verdict').textContent = '';
    }
    busy = false;
    $('conformance-go').textContent = 'Run again';
  }

  function verdict(whole) {
    const words = totals.differ
      ? `${count(totals.differ)} cases of ${count(totals.done)} differ from PyTorch ${facts.torch}.`
      : `${whole ? 'All' : 'Cancelled. All so far:'} ${count(totals.same)} cases of ${totals.ops} ops are as PyTorch ${facts.torch} has them.`;
    $('conformance-verdict').textContent = words;
    $('conformance-verdict').className = totals.differ ? 'bad' : 'good';
    const wrong = found.findIndex((each) => each?.cells.some((cell) => cell.wrong));
    if (wrong >= 0)
      open(
        wrong,
        found[wrong].cells.findIndex((cell) => cell.wrong),
      );
  }

  /** Shows the rows whose names contain the text; optionally only those that differ. */
  function filter() {
    const text = $('conformance-find').value.trim().toLowerCase();
    const wrong = $('conformance-wrong').checked;
    Array.from($('conformance-rows').rows).forEach((row, i) => {
      row.hidden =
        !facts.ops[i].toLowerCase().includes(text) || (wrong && row.className !== 'differs');
    });
  }

  /** Shows the cases of a cell. */
  async function open(number, column) {
    const [mode, dtype] = facts.columns[column];
    const mine = ++asked;
    section.querySelector('[data-open]')?.removeAttribute('data-open');
    $('conformance-rows').rows[number].cells[column + 1].dataset.open = '';
    const cases = await worker.ask('detail', { number, mode, dtype }).catch(showError);
    if (mine !== asked || !cases) return;
    shell.well();
    const time = found[number]
      ? `, ${found[number].milliseconds.toFixed(1)} ms for all of its cases`
      : '';
    $('conformance-what').textContent = `${facts.ops[number]}: ${mode}, ${dtype}${time}`;
    $('conformance-mode').replaceChildren(
      ...facts.columns.map(([m, d], i) => {
        const option = element('option', { value: i }, `${m}, ${d}`);
        option.selected = i === column;
        return option;
      }),
    );
    $('conformance-mode').disabled = false;
    $('conformance-mode').onchange = (event) => open(number, Number(event.target.value));
    $('conformance-cases').replaceChildren(
      ...(cases.length
        ? cases.map(caseElement)
        : [element('p', { class: 'quiet' }, 'There is no such case.')]),
    );
  }

  function caseElement({ call, inputs, got, wanted, same }) {
    const tone = same === null ? 'quiet' : same ? 'good' : 'bad';
    const words = same === null ? 'not compared' : same ? 'the same' : 'differs';
    const part = (title, text) => [
      element('dt', {}, title),
      element('dd', {}, element('pre', {}, text)),
    ];
    return element(
      'div',
      { class: 'case' },
      element('p', {}, element('code', {}, call), ' ', element('span', { class: tone }, words)),
      element(
        'dl',
        {},
        ...(inputs ? part('Inputs', inputs) : []),
        ...part('This browser', got),
        ...part(`PyTorch ${facts.torch}`, wanted),
      ),
    );
  }

  $('conformance-go').addEventListener('click', toggle);
  $('conformance-find').addEventListener('input', filter);
  $('conformance-wrong').addEventListener('change', filter);
  $('conformance-rows').addEventListener('click', ({ target }) => {
    const row = target.closest('tr');
    const cell = target.closest('td');
    if (!row) return;
    const number = row.sectionRowIndex;
    const wrong = found[number]?.cells.findIndex((each) => each.wrong) ?? 0;
    open(number, cell ? cell.cellIndex - 1 : Math.max(0, wrong));
  });
  $('conformance-rows').addEventListener('mouseover', ({ target }) => {
    if (target.tagName !== 'TD' || target.title) return;
    const [mode, dtype] = facts.columns[target.cellIndex - 1];
    target.title = `${facts.ops[target.parentElement.sectionRowIndex]}, ${mode}, ${dtype}: ${WORDS[target.dataset.kind] ?? 'not run yet'}`;
  });

  return async () => {
    facts = await worker.start();
    head(facts.columns);
    body(facts.ops, facts.columns);
    $('conformance-done').textContent = `0 / ${count(facts.cases)}`;
    $('conformance-go').disabled = false;
  };
}
