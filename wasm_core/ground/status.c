/* The error of the current crossing and the queue of warnings; see status.h. */
#include "ground/status.h"

#include <stdarg.h>
#include <stdio.h>

Status status_now = OK;
static char message[MESSAGE_CAP];

static const char *const names[] = {
#define ROW(name, code, text) [code] = text,
    STATUS_ROWS(ROW)
#undef ROW
};

const char *status_name(Status s) {
  return (unsigned)s < sizeof names / sizeof *names ? names[s] : NULL;
}

void *fail(Status s, const char *format, ...) {
  if (status_now != OK) return NULL;
  status_now = s;
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return NULL;
}

const char *status_message(void) { return message; }
void status_clear(void) { status_now = OK; }

enum { WARNINGS = 4, WARNING_CAP = 768 };
static char warnings[WARNINGS][WARNING_CAP];
static int warning_first, warning_count;

bool warn_always;
bool warn_first(bool *given) {
  bool due = !*given || warn_always;
  *given = true;
  return due;
}

void warn_user(const char *format, ...) {
  if (warning_count == WARNINGS) return;
  va_list args;
  va_start(args, format);
  vsnprintf(warnings[(warning_first + warning_count++) % WARNINGS], WARNING_CAP, format, args);
  va_end(args);
}

const char *warn_take(void) {
  if (!warning_count) return NULL;
  const char *w = warnings[warning_first];
  warning_first = (warning_first + 1) % WARNINGS;
  warning_count--;
  return w;
}

int warn_waiting(void) { return warning_count; }
