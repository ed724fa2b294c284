/* Texts of any length; see text.h. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "status.h"

/* Whether there is room for n bytes more. */
static bool has_room(Text *t, size_t n) {
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
  if (!has_room(t, n)) return;
  memcpy(t->at + t->length, bytes, n);
  t->length += n;
}

void text_repeat(Text *t, char what, int64_t n) {
  for (; n > 0; n--) text_add(t, &what, 1);
}

void text_format(Text *t, const char *format, ...) {
  for (size_t n = 100;;) {
    if (!has_room(t, n)) return;
    va_list values;
    va_start(values, format);
    size_t length = (size_t)vsnprintf(t->at + t->length, t->room - t->length, format, values);
    va_end(values);
    if (length < t->room - t->length) {
      t->length += length;
      return;
    }
    n = length + 1;
  }
}

/* The character that begins at *at, in UTF-8, whose rest is skipped. */
static uint32_t character(const unsigned char **at, const unsigned char *end) {
  uint32_t c = *(*at)++;
  if (c >= 0xC0) c &= c < 0xE0 ? 0x1F : c < 0xF0 ? 0x0F : 0x07;
  for (; *at < end && (**at & 0xC0) == 0x80; ++*at) c = c << 6 | (**at & 0x3F);
  return c;
}

void text_json(Text *t, const char *bytes, int n) {
  static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* what is escaped, and how */
  const unsigned char *at = (const unsigned char *)bytes, *end = at + n;
  text_add(t, "\"", 1);
  while (at < end) {
    uint32_t c = character(&at, end);
    const char *letter = letters;
    while (*letter && (unsigned char)*letter != c) letter += 2;
    if (*letter) text_format(t, "\\%c", letter[1]);
    else if (c >= ' ' && c <= '~') text_repeat(t, (char)c, 1);
    else if (c < 0x10000) text_format(t, "\\u%04x", (unsigned)c);
    else text_format(t, "\\u%04x\\u%04x", 0xD7C0 + (unsigned)(c >> 10), 0xDC00 + (unsigned)(c & 0x3FF));
  }
  text_add(t, "\"", 1);
}

void ret_text(Call *c, Text *t) {
  text_add(t, "", 1);
  if (!failed()) ret_str(c, t->at);
}
