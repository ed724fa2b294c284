/* Numbers as text, for the defaults of schemas and for messages.
 *
 * The C library parses numbers in quadruple precision, which is software arithmetic here and would
 * be most of the binary's library code. Two doubles are precise enough for 17 digits. */
#include "ground/number.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* digits * 10^exponent as high + low: `low` collects the rounding errors of `high`. Products with 8
 * and 2 are exact, as are differences of numbers within a factor of two. */
static double times_power_of_ten(uint64_t digits, int exponent) {
  double high = (double)digits, low = (double)(int64_t)(digits - (uint64_t)high);
  for (; exponent > 0; exponent--) {
    double sum = 8 * high + 2 * high;
    low = 10 * low + (2 * high - (sum - 8 * high));
    high = sum;
  }
  for (; exponent < 0; exponent++) {
    double tenth = high / 10;
    low = (high - 8 * tenth - 2 * tenth + low) / 10;
    high = tenth;
  }
  return high + low;
}

double number_value(const char *text) {
  bool negative = *text == '-';
  if (negative || *text == '+') text++;
  if (*text == 'i') return negative ? -(double)INFINITY : (double)INFINITY;
  uint64_t digits = 0;
  int exponent = 0;
  for (bool fraction = false; (*text >= '0' && *text <= '9') || (*text == '.' && !fraction);
       text++) {
    if (*text == '.') fraction = true;
    else {
      digits = 10 * digits + (uint64_t)(*text - '0');
      exponent -= fraction;
    }
  }
  if (*text == 'e') exponent += atoi(text + 1);
  double v = times_power_of_ten(digits, exponent);
  return negative ? -v : v;
}

const char *number_text(double v) {
  static char texts[4][40];
  static int turn;
  char *text = texts[turn++ & 3];
  if (!isfinite(v)) return isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
  int digits = 0;
  do snprintf(text, sizeof texts[0], "%.*e", digits, v);
  while (number_value(text) != v && ++digits < 17);
  int exponent = atoi(strchr(text, 'e') + 1);
  int decimals = digits - exponent > 1 ? digits - exponent : 1;
  if (exponent >= -4 && exponent < 16) snprintf(text, sizeof texts[0], "%.*f", decimals, v);
  return text;
}
