/* Texts of any length; see text.h. */
#include "ground/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/status.h"

bool text_has_room(Text *t, size_t n) {
  if (t->length + n <= t->room) return true;
  size_t room = 2 * (t->length + n) + 256;
  char *grown = failed() ? NULL : scratch_alloc(room);
  if (!grown) return false;
  if (t->length) memcpy(grown, t->at, t->length);
  t->at = grown;
  t->room = room;
  return true;
}

void text_add(Text *t, const char *bytes, size_t n) {
  if (!n || !text_has_room(t, n)) return;
  memcpy(t->at + t->length, bytes, n);
  t->length += n;
}

void text_repeat(Text *t, char what, int64_t n) {
  for (; n > 0; n--) text_add(t, &what, 1);
}

static void add_format(Text *t, const char *format, va_list given) {
  for (size_t n = 100;;) {
    if (!text_has_room(t, n)) return;
    va_list values;
    va_copy(values, given);
    size_t length = (size_t)vsnprintf(t->at + t->length, t->room - t->length, format, values);
    va_end(values);
    if (length < t->room - t->length) {
      t->length += length;
      return;
    }
    n = length + 1;
  }
}

void text_format(Text *t, const char *format, ...) {
  va_list values;
  va_start(values, format);
  add_format(t, format, values);
  va_end(values);
}

const char *textf(const char *format, ...) {
  Text t = {0};
  va_list values;
  va_start(values, format);
  add_format(&t, format, values);
  va_end(values);
  return text_end(&t);
}

void text_json(Text *t, const char *text) {
  text_repeat(t, '"', 1);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') text_repeat(t, '\\', 1);
    if ((unsigned char)*text < ' ') text_format(t, "\\u%04x", (unsigned)*text);
    else text_repeat(t, *text, 1);
  }
  text_repeat(t, '"', 1);
}

const char *text_end(Text *t) {
  text_add(t, "", 1);
  return failed() ? NULL : t->at;
}
