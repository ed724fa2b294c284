/* Numbers as unevaluated sums of two doubles, of about 106 bits, for the few places where a result
 * is the small difference of large terms.
 *
 * Operands are neither huge nor tiny: products are split without a guard against overflow. */
#ifndef PG_TWOFOLD_H
#define PG_TWOFOLD_H

typedef struct {
  double high, low;
} Twofold;

/* a + b, exactly. */
static inline Twofold twofold_sum(double a, double b) {
  double s = a + b, of_b = s - a;
  return (Twofold){s, (a - (s - of_b)) + (b - of_b)};
}

/* a b, exactly. */
static inline Twofold twofold_product(double a, double b) {
  double ca = 134217729.0 * a, cb = 134217729.0 * b, p = a * b;
  double ah = ca - (ca - a), al = a - ah, bh = cb - (cb - b), bl = b - bh;
  return (Twofold){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

static inline Twofold twofold_add(Twofold a, Twofold b) {
  Twofold s = twofold_sum(a.high, b.high);
  return twofold_sum(s.high, s.low + (a.low + b.low));
}

static inline Twofold twofold_mul(Twofold a, Twofold b) {
  Twofold p = twofold_product(a.high, b.high);
  return twofold_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

static inline Twofold twofold_div(Twofold a, Twofold b) {
  double q = a.high / b.high;
  Twofold p = twofold_product(q, b.high);
  double rest = ((a.high - p.high) - p.low) + (a.low - q * b.low);
  return twofold_sum(q, rest / b.high);
}

static inline Twofold twofold_negative(Twofold a) { return (Twofold){-a.high, -a.low}; }

#endif
