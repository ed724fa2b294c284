/* Reports of events that are not as a well-behaved host tells them: too few fields, too few
 * numbers, characters cut short. */
#include "check.h"

#include "tape/profile.h"

static Value text(const char *s) { return (Value){.tag = s ? TAG_STR : TAG_NONE, .s = s}; }

static const char *report(void (*op)(Call *), Call *c, const char *records, int n,
                          const double *numbers) {
  c->n_args = 6;
  c->v[0] = text(records);
  c->v[1] = (Value){.tag = TAG_FLOATS, .n = n, .p = numbers};
  op(c);
  return c->result.tag == TAG_STR ? (const char *)(uintptr_t)c->result.value : NULL;
}

enum { WIDTH = 75 };

/* A table of events of one microsecond, with names of at most `most_name` characters. */
static const char *table(const char *records, int n_events, int64_t most_name, const char *unit) {
  double numbers[4 * 8] = {0};
  for (int i = 0; i < n_events; i++)
    memcpy(numbers + 8 * i, (double[]){1, 1, 0, 0, 1, 0, 1, 0}, 8 * sizeof(double));
  const int64_t options[] = {0, 0, 100, WIDTH, most_name, WIDTH, 0};
  Call c = {.v[2] = {.tag = TAG_FLOAT, .f = n_events},
            .v[3] = {.tag = TAG_INTS, .n = COUNT(options), .p = options},
            .v[4] = text(NULL),
            .v[5] = text(unit)};
  return report(op_profile_table, &c, records, 8 * n_events, numbers);
}

/* Whether the k-th line of a text begins so. */
static bool line_begins(const char *text, int k, const char *with) {
  for (; text && k > 0; k--) text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
  return text && strncmp(text, with, strlen(with)) == 0;
}

static void a_table_of_nothing_is_empty(void) { CHECK_TEXT(table("", 0, WIDTH, "h"), ""); }

static void fields_and_records_may_be_missing(void) {
  CHECK(line_begins(table("a\x1f[]\x1e"
                          "bc",
                          4, WIDTH, NULL),
                    4, "    bc  "));
  CHECK(line_begins(table("a\x1f[]\x1e"
                          "bc",
                          4, WIDTH, NULL),
                    6, "        "));
  CHECK(line_begins(table("\x1e\x1f\x1e\x1f\x1f\x1e", 4, WIDTH, NULL), 3, "      "));
}

static void names_are_cut_between_characters(void) {
  CHECK(line_begins(table("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 1, 5, NULL), 3,
                    "\xC3\xA9\xC3\xA9...  "));
  CHECK(line_begins(table("abcdef", 1, 1, NULL), 3, "abcd...  ")); /* as Python's text[:-2] */
  CHECK(line_begins(table("abcdef", 1, 0, NULL), 3, "abcdef  "));
}

static void there_are_three_units(void) {
  CHECK(!table("a", 1, WIDTH, "h"));
  CHECK_FAILED(ERR_VALUE, "time_unit is one of s, ms, us, not 'h'");
}

static void a_trace_of_too_few_numbers_has_fewer_events(void) {
  const double numbers[8] = {1, 2.5, 1, 3, 1, 0, 1, 9};
  Call c = {.v[2] = {.tag = TAG_INT, .i = 5}};
  CHECK_TEXT(report(op_profile_trace, &c, "\"a\"", 8, numbers),
             "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"traceEvents\": [{\"ph\": "
             "\"M\", \"name\": \"process_name\", \"pid\": 5, \"tid\": 0, \"args\": {\"name\": "
             "\"pygrad\"}}, {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"ts\": 2.5, "
             "\"dur\": 1.0, \"args\": {\"External id\": 1, \"Sequence number\": 3, \"Input Dims\": "
             ", \"Call stack\": }, \"pid\": 5, \"tid\": 1}]}");
}

int main(void) {
  RUN(a_table_of_nothing_is_empty);
  RUN(fields_and_records_may_be_missing);
  RUN(names_are_cut_between_characters);
  RUN(there_are_three_units);
  RUN(a_trace_of_too_few_numbers_has_fewer_events);
  return finish();
}
