/* Numbers as text, read and written as Python does. */
#ifndef PG_NUMBER_H
#define PG_NUMBER_H

/* Parses the double at the start of `text`: digits with an optional sign, point and exponent, or
 * "inf". */
double number_value(const char *text);
/* the shortest text that parses to v, in a rotating static buffer */
const char *number_text(double v);

#endif
