/* Numbers as text, read and written as Python does. */
#ifndef PG_NUMBER_H
#define PG_NUMBER_H

/* The double that `text` (digits, perhaps with a sign, a point and an exponent; or "inf") begins
 * with. */
double number_value(const char *text);
/* the shortest that reads as v again, in a rotating static buffer */
const char *number_text(double v);

#endif
