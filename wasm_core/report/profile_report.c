/* Reports of a list of profiled events: PyTorch's table, and a trace for viewers.
 *
 * A host may have filtered, sorted and averaged the list, so both reports use the host's data of
 * its events: a fixed count of numbers and a record of fields for each. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/number.h"
#include "ground/status.h"
#include "ground/text.h"
#include "ops/op.h"
#include "tape/profile.h"

enum { FIELD_END = '\x1f', RECORD_END = '\x1e' };

/* The length of a field, which ends at the next field or at the end of the text. */
static int length(const char *field) {
  static const char ends[] = {FIELD_END, RECORD_END, 0};
  return (int)strcspn(field, ends);
}

/* The k-th field after a field, or of a record; NULL if there is none. */
static const char *field(const char *record, int k) {
  for (; k > 0; k--) {
    record += length(record);
    if (*record++ != FIELD_END) return NULL;
  }
  return record;
}

static const char *next_record(const char *record) {
  while (record[length(record)] == FIELD_END) record += length(record) + 1;
  record += length(record);
  return record + (*record != 0);
}

/* The numbers of all events, `per` for each. */
static Floats numbers_of(const Call *c, int per) {
  Floats numbers = arg_floats(c, 1);
  numbers.n -= numbers.n % per;
  return numbers;
}

/* ------------------------------------------------------------ quantities as text */

typedef struct {
  const char *name;
  double size;
} Unit;
static const Unit units[] = {{"s", 1e6},       {"ms", 1e3},      {"us", 1}, {" GB", 1 << 30},
                             {" MB", 1 << 20}, {" KB", 1 << 10}, {" B", 1}};
enum { MICROSECONDS = 2, MOST_BYTES, BYTES = sizeof units / sizeof *units - 1, BY_SIZE = -1 };
enum { CELL_CAP = 360 }; /* a double may have 309 digits before its point */

static void fixed_text(char *out, double v, int decimals, const char *unit) {
  snprintf(out, CELL_CAP, "%.*f%s", decimals, isnan(v) ? (double)NAN : v, unit); /* never "-nan" */
}

/* Writes a time in unit `unit`, or (BY_SIZE) in the largest unit that it reaches. */
static void time_text(char *out, double us, int unit) {
  if (unit == BY_SIZE)
    for (unit = 0; unit < MICROSECONDS && !(us >= units[unit].size);) unit++;
  fixed_text(out, us / units[unit].size, 3, units[unit].name);
}

static void memory_text(char *out, double bytes) {
  int unit = MOST_BYTES;
  while (unit < BYTES && !(fabs(bytes) >= units[unit].size)) unit++;
  fixed_text(out, bytes / units[unit].size, unit < BYTES ? 2 : 0, units[unit].name);
}

/* The number of a unit by name. */
static int time_unit(const char *name) {
  for (int k = 0; name && k <= MICROSECONDS; k++)
    if (strcmp(name, units[k].name) == 0) return k;
  if (name) fail(ERR_VALUE, "time_unit is one of s, ms, us, not '%s'", name);
  return BY_SIZE;
}

void op_profile_quantity(Call *c) {
  char text[CELL_CAP];
  (arg_bool(c, 1) ? memory_text(text, arg_float(c, 0)) : time_text(text, arg_float(c, 0), BY_SIZE));
  ret_str(c, text);
}

/* ------------------------------------------------------------ the table */

/* fields of a record after the name: the shapes, and the calls of the stack, innermost first */
enum { SHAPES = 1, CALL };

/* the numbers of an event */
enum { SELF_TIME, TIME, MEMORY, SELF_MEMORY, COUNT, FLOPS, TIME_AVERAGE, IS_INSIDE, N_NUMBERS };
typedef enum {
  AS_NAME,
  AS_SHARE,
  AS_TIME,
  AS_MEMORY,
  AS_COUNT,
  AS_SHAPES,
  AS_SOURCE,
  AS_FLOPS
} Form;

static const struct {
  const char *title; /* a format */
  uint8_t form, number;
} columns[] = {
    {"Name", AS_NAME, 0},
    {"Self CPU %%", AS_SHARE, SELF_TIME},
    {"Self CPU", AS_TIME, SELF_TIME},
    {"CPU total %%", AS_SHARE, TIME},
    {"CPU total", AS_TIME, TIME},
    {"CPU time avg", AS_TIME, TIME_AVERAGE},
    {"CPU Mem", AS_MEMORY, MEMORY},
    {"Self CPU Mem", AS_MEMORY, SELF_MEMORY},
    {"# of Calls", AS_COUNT, COUNT},
    {"Input Shapes", AS_SHAPES, 0},
    {"Source Location", AS_SOURCE, 0},
    {"Total %.*sFLOPs", AS_FLOPS, FLOPS},
};
enum {
  N_COLUMNS = sizeof columns / sizeof *columns,
  N_FORMS = AS_FLOPS + 1,
  USUAL_WIDTH = 12,
  NEVER = -1
};

typedef struct {
  Text text;
  /* widths: NEVER for an absent column; most: NEVER for a column that is never cut */
  int64_t widths[N_FORMS], most[N_FORMS];
  double total;               /* the total time of all events */
  int time_unit, flops_power; /* the unit of operations is a thousand to this power */
  double flops_unit;
} Table;

static bool begins_character(char byte) { return ((unsigned char)byte & 0xC0) != 0x80; }

static int n_characters(const char *field) {
  int n = 0;
  for (int i = length(field); i > 0; i--) n += begins_character(field[i - 1]);
  return n;
}

/* The number of bytes of the first k characters; for k < 0, of all but the last -k. */
static int bytes_of(const char *field, int64_t k) {
  int i = 0, n = length(field);
  if (k < 0) k += n_characters(field);
  while (i < n && (!begins_character(field[i]) || k-- > 0)) i++;
  return i;
}

/* Writes a cell; a text longer than `most` is cut at its end, a source at its beginning. */
static void put_cell(Table *t, Form form, const char *field, int64_t most) {
  bool is_source = form == AS_SOURCE, is_cut = most >= 0 && n_characters(field) > most;
  int64_t spaces = is_cut ? 0 : t->widths[form] - n_characters(field);
  int n = length(field), at = is_source ? 0 : n;
  if (is_cut) at = bytes_of(field, is_source ? 3 - most : most - 3);
  if (!is_source) {
    text_repeat(&t->text, ' ', spaces);
    text_add(&t->text, field, (size_t)at);
  }
  text_repeat(&t->text, '.', is_cut ? 3 : 0);
  if (is_source) {
    text_add(&t->text, field + at, (size_t)(n - at));
    text_repeat(&t->text, ' ', spaces);
  }
  text_repeat(&t->text, ' ', 2);
}

/* A column's text for an event, written to `text` unless it is in the record. */
static const char *content(const Table *t, Form form, const char *record, double v, char *text) {
  switch (form) {
    case AS_NAME: return record;
    case AS_SHAPES: return field(record, SHAPES);
    case AS_SOURCE: return field(record, CALL);
    case AS_SHARE:
      fixed_text(text, t->total != 0 ? 100 * v / t->total : (double)NAN, 2, "%");
      break;
    case AS_TIME: time_text(text, v, t->time_unit); break;
    case AS_MEMORY: memory_text(text, v); break;
    case AS_COUNT: fixed_text(text, v, 0, ""); break;
    case AS_FLOPS:
      (v > 0 ? fixed_text(text, v / t->flops_unit, 3, "") : (void)strcpy(text, "--"));
      break;
  }
  return text;
}

/* Writes the row of titles (no record), the row of an event, or (no numbers) a row for a further
 * call of its stack, if any. */
static void put_row(Table *t, const char *record, const double *v, const char *call) {
  char text[CELL_CAP];
  for (int k = 0; k < N_COLUMNS; k++) {
    Form form = (Form)columns[k].form;
    const char *shown = text;
    if (t->widths[form] < 0) continue;
    if (!record)
      snprintf(text, sizeof text, columns[k].title, t->flops_power > 0, &" KMGTPE"[t->flops_power]);
    else if (v) shown = content(t, form, record, v[columns[k].number], text);
    else shown = form == AS_SOURCE ? call : NULL;
    put_cell(t, form, shown ? shown : "", record ? t->most[form] : NEVER);
  }
  text_repeat(&t->text, '\n', 1);
}

/* Writes a line between rows, with gaps between columns, or an unbroken one of '='. */
static void put_rule(Table *t, char line) {
  for (int k = 0; k < N_COLUMNS; k++) {
    int64_t width = t->widths[columns[k].form];
    text_repeat(&t->text, line, width);
    text_repeat(&t->text, line == '=' ? line : ' ', width < 0 ? 0 : 2);
  }
  if (line == '=' && t->text.length > 1) t->text.length -= 2;
  text_repeat(&t->text, '\n', 1);
}

/* Writes the rows of an event; with stacks, a row for each call and an empty one. */
static void put_event(Table *t, const char *record, const double *v) {
  put_row(t, record, v, NULL);
  if (t->widths[AS_SOURCE] < 0) return;
  const char *call = field(record, CALL);
  do {
    call = call ? field(call, 1) : NULL;
    put_row(t, record, NULL, call);
  } while (call);
}

static void widen(Table *t, Form form, const char *field) {
  int64_t width = n_characters(field) + 4;
  if (width > t->widths[form]) t->widths[form] = width;
}

/* Limits the width of a column of texts, if it is present; longer texts are cut. */
static void limit(Table *t, Form form, int64_t least, int64_t most) {
  int64_t *width = &t->widths[form];
  if (most >= 0 && *width > most) *width = most;
  if (*width >= 0 && *width < least) *width = least;
  t->most[form] = *width;
}

/* Chooses the unit by the smallest count of operations; without any there is no column. */
static void choose_flops_unit(Table *t, Floats numbers) {
  double least = (double)INFINITY;
  for (int i = 0; i < numbers.n; i += N_NUMBERS)
    if (numbers.v[i + FLOPS] > 0) least = fmin(least, numbers.v[i + FLOPS]);
  if (isinf(least)) t->widths[AS_FLOPS] = NEVER;
  for (t->flops_unit = 1; t->flops_power < 6 && least >= 1000 * t->flops_unit; t->flops_power++)
    t->flops_unit *= 1000;
}

enum {
  WITH_MEMORY,
  WITH_FLOPS,
  ROW_LIMIT,
  MOST_SOURCE,
  MOST_NAME,
  MOST_SHAPES,
  TOP_LEVEL,
  N_OPTIONS
};

static void choose_widths(Table *t, const int64_t *options, const char *record, Floats numbers) {
  for (int form = 0; form < N_FORMS; form++) {
    t->widths[form] = form == AS_NAME || form == AS_SHAPES || form == AS_SOURCE ? NEVER
                                                                                : USUAL_WIDTH;
    t->most[form] = NEVER;
  }
  if (!options[WITH_MEMORY]) t->widths[AS_MEMORY] = NEVER;
  choose_flops_unit(t, options[WITH_FLOPS] ? numbers : (Floats){0, NULL});
  for (int i = 0; i < numbers.n; i += N_NUMBERS, record = next_record(record)) {
    widen(t, AS_NAME, record);
    const char *shown = field(record, SHAPES);
    if (shown && length(shown) > 2) widen(t, AS_SHAPES, shown); /* not [] */
    for (shown = field(record, CALL); shown; shown = field(shown, 1)) widen(t, AS_SOURCE, shown);
  }
  limit(t, AS_SOURCE, 0, options[MOST_SOURCE]);
  limit(t, AS_NAME, 0, options[MOST_NAME]);
  limit(t, AS_SHAPES, USUAL_WIDTH, options[MOST_SHAPES]);
  t->most[AS_NAME] = options[MOST_NAME] > 0 ? options[MOST_NAME] : NEVER;
}

static void put_header(Table *t, const char *header) {
  if (!header) return;
  put_rule(t, '=');
  text_format(&t->text, "%s\n", header);
}

void op_profile_table(Call *c) {
  const char *record = arg_str(c, 0);
  Floats numbers = numbers_of(c, N_NUMBERS);
  const Ints options = arg_ints(c, 3);
  Table t = {.total = arg_float(c, 2)};
  if (!numbers.n) ret_str(c, "");
  else t.time_unit = time_unit(arg_str(c, 5));
  if (failed() || !numbers.n || options.n < N_OPTIONS) return;
  choose_widths(&t, options.v, record, numbers);
  put_header(&t, arg_str(c, 4));
  put_header(&t, options.v[TOP_LEVEL] ? "This report only display top-level ops statistics" : NULL);
  put_rule(&t, '-');
  put_row(&t, NULL, NULL, NULL);
  put_rule(&t, '-');
  int64_t n_rows = options.v[ROW_LIMIT];
  for (int i = 0; i < numbers.n && n_rows; i += N_NUMBERS, record = next_record(record)) {
    if (options.v[TOP_LEVEL] && numbers.v[i + IS_INSIDE] != 0) continue;
    put_event(&t, record, numbers.v + i);
    n_rows--;
  }
  put_rule(&t, '-');
  char total[CELL_CAP];
  time_text(total, t.total, t.time_unit);
  text_format(&t.text, "Self CPU time total: %s\n", total);
  ret_text(c, &t.text);
}

/* ------------------------------------------------------------ the trace */

/* The numbers of an event. Its record is in JSON: the name, the shapes, the stack. */
enum {
  ID,
  START,
  DURATION,
  SEQUENCE,
  SCOPE,
  IS_ANNOTATION,
  THREAD,
  N_TRACED,
  PROCESS = N_TRACED,
  MAKER_START,
  N_FILLED
};
enum { OF_OP, OF_NODE }; /* scopes */

/* Templates of an event, and of an arrow to it from the op that made its node. @ and # precede the
 * place of a number, $ the place of a field. */
static const char head[] =
    "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceEvents\": [{\"ph\": \"M\", "
    "\"name\": \"process_name\", \"pid\": @7, \"tid\": 0, \"args\": {\"name\": \"pygrad\"}}";
static const char op[] = ", {\"ph\": \"X\", \"cat\": \"cpu_op",
                  annotation[] = ", {\"ph\": \"X\", \"cat\": \"user_annotation";
static const char rest[] =
    "\", \"name\": $0, \"ts\": #1, \"dur\": #2, \"args\": {\"External id\": @0, \"Sequence "
    "number\": @3, \"Input Dims\": $1, \"Call stack\": $2}, \"pid\": @7, \"tid\": @6}";
static const char arrow[] =
    ", {\"ph\": \"s\", \"ts\": #8, \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", \"id\": @3, \"pid\": "
    "@7, \"tid\": @6}, {\"ph\": \"f\", \"bp\": \"e\", \"ts\": #1, \"cat\": \"fwdbwd\", \"name\": "
    "\"fwdbwd\", \"id\": @3, \"pid\": @7, \"tid\": @6}";

/* Appends a template, filled in. */
static void fill(Text *t, const char *form, const char *record, const double *v) {
  for (; *form; form++) {
    int place = form[1] - '0';
    const char *text = form;
    if (*form == '#') text = number_text(v[place]);
    else if (*form == '$') text = field(record, place);
    if (*form == '@') text_format(t, "%lld", (Shown)v[place]);
    else if (text) text_add(t, text, text == form ? 1 : (size_t)length(text));
    form += *form == '@' || text != form;
  }
}

/* The entry of a sequence number in a hash table of makers, which stores 1 + the maker's place
 * among the numbers, 0 if it is absent. */
static int32_t *maker(int32_t *makers, size_t mask, Floats numbers, double sequence) {
  size_t k = (size_t)(int64_t)sequence & mask;
  while (makers[k] && numbers.v[makers[k] - 1 + SEQUENCE] != sequence) k = (k + 1) & mask;
  return &makers[k];
}

void op_profile_trace(Call *c) {
  const char *record = arg_str(c, 0);
  Floats numbers = numbers_of(c, N_TRACED);
  size_t size = 2;
  while (size <= (size_t)numbers.n / 4) size *= 2; /* more than there are events */
  int32_t *makers = scratch_array_zero((int64_t)size, sizeof *makers);
  Text t = {0};
  if (failed()) return;
  /* backwards, so that the first event of a number wins: the op, not its evaluation in a
   * backward */
  for (int i = numbers.n - N_TRACED; i >= 0; i -= N_TRACED)
    if (numbers.v[i + SEQUENCE] >= 0 && numbers.v[i + SCOPE] == OF_OP)
      *maker(makers, size - 1, numbers, numbers.v[i + SEQUENCE]) = i + 1;
  double v[N_FILLED] = {[PROCESS] = arg_float(c, 2)};
  fill(&t, head, record, v);
  for (int i = 0; i < numbers.n; i += N_TRACED, record = next_record(record)) {
    memcpy(v, numbers.v + i, N_TRACED * sizeof *v);
    fill(&t, v[IS_ANNOTATION] != 0 ? annotation : op, record, v);
    fill(&t, rest, record, v);
    int32_t from = v[SCOPE] == OF_NODE ? *maker(makers, size - 1, numbers, v[SEQUENCE]) : 0;
    if (!from) continue;
    v[MAKER_START] = numbers.v[from - 1 + START];
    fill(&t, arrow, record, v);
  }
  text_add(&t, "]}", 2);
  ret_text(c, &t);
}
