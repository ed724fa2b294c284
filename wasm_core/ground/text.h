/* Texts of any length, built piece by piece in scratch: they live until the crossing ends. */
#ifndef PG_TEXT_H
#define PG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ground/status.h"

typedef struct {
  char *at; /* NULL while empty; not NUL-terminated */
  size_t length, room;
} Text;

/* Each appends to the text, or does nothing once memory has run out (ERR_MEMORY). */
void text_add(Text *t, const char *bytes, size_t n);
void text_repeat(Text *t, char what, int64_t n);
void text_format(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_json(Text *t, const char *text); /* as a JSON string */

/* Makes room for n bytes at the end, which the caller writes and adds to `length`; false without
 * memory. */
bool text_has_room(Text *t, size_t n);
/* The text, NUL-terminated, in scratch; NULL once memory has run out. */
const char *text_end(Text *t);
/* Formats a new text. */
const char *textf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
