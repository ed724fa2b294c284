/* Numbers as text: the nearest double, and the shortest text that reads as it. */
#include "check.h"

#include "ground/number.h"

static void texts_are_read_as_the_nearest_double(void) {
  static const char *const texts[] = {"0.5",
                                      "1e-05",
                                      "-1.0",
                                      "0.3333333333333333",
                                      "1e-15",
                                      "20",
                                      "6.02214076e23",
                                      "1.7976931348623157e308",
                                      "2.2250738585072014e-308",
                                      "123456789012345678",
                                      "9007199254740993"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    CHECK(number_value(texts[i]) == strtod(texts[i], NULL));
  CHECK(number_value("inf") == (double)INFINITY && number_value("-inf") == -(double)INFINITY);
}

static void reading_ends_where_the_number_does(void) {
  CHECK(number_value("0.1, bool") == 0.1);
  CHECK(number_value("1e-8)") == 1e-8);
}

static void random_doubles_survive_their_text(void) {
  uint64_t bits = 1;
  for (int i = 0; i < 200000; i++) {
    bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    union {
      uint64_t bits;
      double value;
    } x = {.bits = bits ^ bits >> 29};
    if (!isnormal(x.value)) continue;
    char text[40];
    snprintf(text, sizeof text, "%.16e", x.value);
    CHECK(number_value(text) == x.value);
  }
}

static void texts_are_pythons(void) {
  CHECK_TEXT(number_text(0.1), "0.1");
  CHECK_TEXT(number_text(0.1 + 0.2), "0.30000000000000004");
  CHECK_TEXT(number_text(-2), "-2.0");
  CHECK_TEXT(number_text(1e16), "1e+16");
  CHECK_TEXT(number_text(1e-05), "1e-05");
  CHECK_TEXT(number_text(0.0001), "0.0001");
  CHECK_TEXT(number_text(2.5e-30), "2.5e-30");
  CHECK_TEXT(number_text((double)INFINITY), "inf");
  CHECK_TEXT(number_text((double)NAN), "nan");
}

int main(void) {
  RUN(texts_are_read_as_the_nearest_double);
  RUN(reading_ends_where_the_number_does);
  RUN(random_doubles_survive_their_text);
  RUN(texts_are_pythons);
  return finish();
}
