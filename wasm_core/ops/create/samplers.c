/* Draws by rejection, an element at a time: poisson, binomial, gamma, Dirichlet; and the
 * derivatives of the last two by their parameters (kernels/pathwise.h).
 *
 * All of these draw uniforms and serial normals of double from the stream, whatever the dtype, in
 * the logical order of elements. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "create_rows.h"
#include "ground/poll.h"
#include "kernels/pathwise.h"
#include "ops/create/random.h"
#include "ops/elementwise/elementwise.h"
#include "ops/view/view.h"

/* x in logical order, without history. */
static Tensor *plain(Tensor *x) { return WITHOUT_GRAD(t_contiguous(x)); }

static double next_uniform(Rng *r) {
  double u;
  rng_uniform_f64(r, &u, 1, 0, 1);
  return u;
}

/* ------------------------------------------------------------ poisson */

/* Transformed rejection with squeeze, W. Hoermann, 1993 ("PTRS"), for rates from 10 on. */
static double poisson_by_rejection(Rng *r, double rate) {
  double root = m_sqrt(rate), log_rate = m_log(rate);
  double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = next_uniform(r) - 0.5, v = next_uniform(r), us = 0.5 - fabs(u);
    double k = floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (m_log(v) + m_log(inverse_alpha) - m_log(a / (us * us) + b) <=
        -rate + k * log_rate - m_lgamma(k + 1))
      return k;
  }
}

static double next_poisson(Rng *r, double rate) {
  if (rate >= 10) return poisson_by_rejection(r, rate);
  if (rate == 0) return 0;
  double limit = m_exp(-rate), product = next_uniform(r), k = 0;
  for (; product > limit; k++) product *= next_uniform(r);
  return k;
}

GRAD(PoissonBackward0, "")
{ gi[0] = t_zeros_like(g[0]); }

Tensor *t_poisson(Tensor *rate, int32_t gen) {
  OP_ENTERED(t_poisson, "poisson", rate, gen);
  IN_FLOAT(t_poisson(rate, gen), rate);
  if (blocked(rate)) return NULL;
  if (!dtype_check_float_kernel("poisson_cpu", tensor_dtype(rate))) return NULL;
  Node *n = node_new(&PoissonBackward0, 0, 0, rate, NULL);
  Rng *r = random_source(gen);
  Tensor *x = plain(rate), *y = tensor_empty(rate->ndim, rate->sizes, tensor_dtype(rate));
  if (!r || !x || !y) return node_drop(n), NULL;
  if (tensor_absent(y)) return set_history(y, n);
  DISPATCH_FLOAT(x->dtype, {
    const T *in = (const T *)(const void *)tensor_data(x);
    T *o = (T *)(void *)tensor_data(y);
    for (int64_t i = 0; i < x->numel; i++)
      if (!(in[i] >= 0))
        fail(ERR_RUNTIME, "invalid Poisson rate, expected rate to be non-negative");
    for (int64_t i = 0; i < x->numel && !failed(); i++) {
      if (poll_stops_round(i, 64)) break;
      o[i] = (T)next_poisson(r, (double)in[i]);
    }
  })
  return set_history(y, n);
}

/* ------------------------------------------------------------ binomial */

/* log k! - [log sqrt(2 pi) + (k + 1/2) log(k + 1) - (k + 1)] */
static double stirling_rest(double k) {
  static const double small[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                 0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                 0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                 0.00833056343336287};
  if (k <= 9) return small[(int)k];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* v as a number of the dtype: PyTorch computes some terms in float32 for float32 operands. */
static double round_if_f32(double v, bool f32) { return f32 ? (double)(float)v : v; }

/* Transformed rejection, W. Hoermann, 1993 ("BTRS"), for count * p from 10 on, p <= 1/2. */
static double binomial_by_rejection(Rng *r, double count, double p, bool f32) {
  double mean = round_if_f32(count * p, f32), miss = round_if_f32(1 - p, f32);
  double deviation = round_if_f32(m_sqrt(round_if_f32(mean * miss, f32)), f32),
         odds = round_if_f32(p / miss, f32);
  double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = mean + 0.5;
  double v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * deviation;
  double m = floor(round_if_f32((count + 1) * p, f32));
  for (;;) {
    double u = next_uniform(r) - 0.5, v = next_uniform(r), us = 0.5 - fabs(u);
    double k = floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    v = m_log(v * alpha / (a / (us * us) + b));
    double bound = (m + 0.5) * m_log((m + 1) / (odds * (count - m + 1))) +
                   (count + 1) * m_log((count - m + 1) / (count - k + 1)) +
                   (k + 0.5) * m_log(odds * (count - k + 1) / (k + 1)) + stirling_rest(m) +
                   stirling_rest(count - m) - stirling_rest(k) - stirling_rest(count - k);
    if (v <= bound) return k;
  }
}

/* Counts the successes by the gaps between them, which are geometric. */
static double binomial_by_gaps(Rng *r, double count, double p, bool f32) {
  double log_miss = round_if_f32(m_log1p(-p), f32), trials = 0, k = 0;
  for (;; k++) {
    trials += ceil(m_log(next_uniform(r)) / log_miss);
    if (trials > count) return k;
  }
}

static double next_binomial(Rng *r, double count, double p, bool f32) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (p != p || count != count) return p + count;
  double rarer = p > 0.5 ? round_if_f32(1 - p, f32) : p;
  bool many = round_if_f32(count * rarer, f32) >= 10;
  double k = many ? binomial_by_rejection(r, count, rarer, f32)
                  : binomial_by_gaps(r, count, rarer, f32);
  return p > 0.5 ? count - k : k;
}

static bool check_binomial(const Tensor *count, const Tensor *prob) {
  static const char *const names[] = {"count", "prob"};
  const Tensor *both[] = {count, prob};
  for (int i = 0; i < 2; i++)
    if (!dtype_is_float(tensor_dtype(both[i])))
      return fail(ERR_VALUE, "binomial only supports floating-point dtypes for %s, got: %s",
                  names[i], legacy(both[i])),
             false;
  if (count->dtype != prob->dtype)
    return fail(ERR_RUNTIME, "Found dtype %s but expected %s", legacy(prob), legacy(count)), false;
  return true;
}

static Tensor *expanded_plain(Tensor *x, int ndim, const int64_t *sizes) {
  return WITHOUT_GRAD(t_contiguous(t_expand(x, ndim, sizes)));
}

NO_DERIVATIVE(binomial)

Tensor *t_binomial(Tensor *count, Tensor *prob, int32_t gen) {
  OP_ENTERED(t_binomial, "binomial", count, prob, gen);
  if (refuses_half(count, "binomial_cpu")) return NULL;
  if (blocked(count) || !prob || !check_binomial(count, prob)) return NULL;
  int ndim = count->ndim;
  int64_t sizes[MAX_DIM];
  memcpy(sizes, count->sizes, (size_t)ndim * sizeof *sizes);
  if (!sizes_broadcast(&ndim, sizes, prob->ndim, prob->sizes)) return NULL;
  Node *n = node_new(&node_binomial, 0, 0, count, prob, NULL);
  Rng *r = random_source(gen);
  Tensor *x = expanded_plain(count, ndim, sizes), *p = expanded_plain(prob, ndim, sizes);
  Tensor *y = tensor_empty(ndim, sizes, tensor_dtype(count));
  if (!r || !x || !p || !y) return node_drop(n), NULL;
  if (tensor_absent(y)) return set_history(y, n);
  DISPATCH_FLOAT(y->dtype, {
    const T *in = (const T *)(const void *)tensor_data(x);
    const T *chance = (const T *)(const void *)tensor_data(p);
    T *o = (T *)(void *)tensor_data(y);
    for (int64_t i = 0; i < y->numel && !poll_stops_round(i, 128); i++)
      o[i] = (T)next_binomial(r, (double)in[i], (double)chance[i], sizeof(T) == 4);
  })
  return set_history(y, n);
}

/* ------------------------------------------------------------ gamma */

static double next_normal(Rng *r) {
  double z;
  rng_normal_serial_f64(r, &z, 1, 0, 1);
  return z;
}

/* G. Marsaglia and W. W. Tsang, 2000, for concentrations from 1 on, where shifted is the
 * concentration - 1/3. */
static double gamma_by_rejection(Rng *r, double shifted) {
  double c = 1 / m_sqrt(9 * shifted);
  for (;;) {
    double z = next_normal(r), root = 1 + c * z;
    if (root <= 0) continue;
    double v = root * root * root, u = 1 - next_uniform(r), square = z * z;
    if (u < 1 - (double)0.0331f * square * square ||
        m_log(u) < 0.5 * square + shifted * (1 - v + m_log(v)))
      return shifted * v;
  }
}

/* Below 1, draws with 1 more and scales. f32: PyTorch computes with a float32 concentration in
 * float32; its third is a float for every type. */
static double next_gamma(Rng *r, double concentration, bool f32) {
  const double third = (double)(1.0f / 3);
  if (concentration == 0) return 0;
  if (!(concentration < 1)) return gamma_by_rejection(r, round_if_f32(concentration - third, f32));
  double power = round_if_f32(1 / concentration, f32);
  double scale = m_pow(1 - next_uniform(r), power);
  return scale *
         gamma_by_rejection(r, round_if_f32(round_if_f32(concentration + 1, f32) - third, f32));
}

GRAD(StandardGammaBackward0, "self result")
{ gi[0] = t_mul(g[0], t_standard_gamma_grad(saved_tensor(n, 0), saved_tensor(n, 1))); }

/* Results are at least the least normal number; a NaN becomes that. */
Tensor *t_standard_gamma(Tensor *concentration, int32_t gen) {
  OP_ENTERED(t_standard_gamma, "_standard_gamma", concentration, gen);
  if (blocked(concentration)) return NULL;
  if (!dtype_check_float_kernel("gamma_cpu", tensor_dtype(concentration))) return NULL;
  Node *n = node_new(&StandardGammaBackward0, 2, 0, concentration, NULL);
  save(n, 0, concentration);
  Rng *r = random_source(gen);
  Tensor *x = plain(concentration);
  Tensor *y = tensor_empty(concentration->ndim, concentration->sizes, tensor_dtype(concentration));
  if (!r || !x || !y) return node_drop(n), NULL;
  if (!tensor_absent(y))
    DISPATCH_FLOAT(x->dtype, {
      const T *in = (const T *)(const void *)tensor_data(x);
      T *o = (T *)(void *)tensor_data(y);
      const T least = sizeof(T) == 4 ? (T)FLT_MIN : (T)DBL_MIN;
      for (int64_t i = 0; i < x->numel && !poll_stops_round(i, 128); i++) {
        T drawn = (T)next_gamma(r, (double)in[i], sizeof(T) == 4);
        o[i] = drawn > least ? drawn : least;
      }
    })
  y = set_history(y, n);
  save_output(n, 1, y);
  return y;
}

/* ------------------------------------------------------------ Dirichlet */

/* v clamped to [least, most]; a NaN becomes `least`. */
static double clamp_between(double v, double least, double most) {
  v = v > least ? v : least;
  return v < most ? v : most;
}

NO_DERIVATIVE(_sample_dirichlet)

Tensor *t_sample_dirichlet(Tensor *concentration, int32_t gen) {
  OP_ENTERED(t_sample_dirichlet, "_sample_dirichlet", concentration, gen);
  if (blocked(concentration)) return NULL;
  if (!dtype_check_float_kernel("dirichlet", tensor_dtype(concentration))) return NULL;
  Node *n = node_new(&node__sample_dirichlet, 0, 0, concentration, NULL);
  Rng *r = random_source(gen);
  Tensor *x = plain(concentration);
  Tensor *y = tensor_empty(concentration->ndim, concentration->sizes, tensor_dtype(concentration));
  Tensor *drawn = tensor_empty(concentration->ndim, concentration->sizes, DT_F64);
  if (!r || !x || !y || !drawn) return node_drop(n), NULL;
  if (tensor_absent(y)) return set_history(y, n);
  double *gammas = (double *)(void *)tensor_data(drawn);
  DISPATCH_FLOAT(x->dtype, {
    const T *in = (const T *)(const void *)tensor_data(x);
    for (int64_t i = 0; i < x->numel && !poll_stops_round(i, 128); i++)
      gammas[i] = clamp_between(next_gamma(r, (double)in[i], false), DBL_MIN, INFINITY);
  })
  int64_t last = x->ndim ? x->ndim - 1 : 0;
  Tensor *sum = WITHOUT_GRAD(t_sum(drawn, (Ints){x->ndim ? 1 : 0, &last}, true, DT_NONE));
  if (!sum) return node_drop(n), NULL;
  const double *sums = (const double *)(const void *)tensor_data(sum);
  int64_t width = x->ndim ? x->sizes[last] : 1;
  DISPATCH_FLOAT(y->dtype, {
    T *o = (T *)(void *)tensor_data(y);
    const double least = sizeof(T) == 4 ? (double)FLT_MIN : DBL_MIN;
    const double most = sizeof(T) == 4 ? 1 - (double)FLT_EPSILON / 2 : 1 - DBL_EPSILON / 2;
    for (int64_t i = 0; i < y->numel; i++)
      o[i] = (T)clamp_between((double)(T)(gammas[i] / sums[i / width]), least, most);
  })
  return set_history(y, n);
}

/* ------------------------------------------------------------ derivatives of draws */

LOOPS_BEGIN
LOOPS(WIDE, 2, gamma_loops, pathwise_gamma(a, b))
SAME3(dirichlet_loops_f32, single, single, pathwise_dirichlet(a, b, c))
SAME3(dirichlet_loops_f64, double, double, pathwise_dirichlet(a, b, c))
static const Loops dirichlet_loops[1] = {{TABLE_FLOAT(dirichlet_loops)}};
LOOPS_END

/* The derivative of draws, contiguous. The operands must share one floating type. */
static Tensor *derivative(const Loops *loops, const char *kernel, int k, Tensor **in) {
  for (int i = 1; i < k; i++)
    if (in[i]->dtype != in[0]->dtype)
      return fail(ERR_RUNTIME, "Found dtype %s but expected %s", legacy(in[i]), legacy(in[0]));
  DType d = tensor_dtype(in[0]);
  return dtype_check_float_kernel(kernel, d)
             ? plain(elementwise_run(loops, &(Tensors){k, in}, d, NULL))
             : NULL;
}

GRAD(StandardGammaGradBackward0, "")
{ fail(ERR_NOT_IMPLEMENTED, "the derivative for '_standard_gamma_grad' is not implemented."); }

Tensor *t_standard_gamma_grad(Tensor *concentration, Tensor *drawn) {
  OP_ENTERED(t_standard_gamma_grad, "_standard_gamma_grad", concentration, drawn);
  if (blocked(concentration, drawn)) return NULL;
  Node *n = node_new(&StandardGammaGradBackward0, 0, 0, concentration, drawn, NULL);
  return set_history(
      derivative(gamma_loops, "_standard_gamma_grad_cpu", 2, (Tensor *[]){concentration, drawn}),
      n);
}

NO_DERIVATIVE(_dirichlet_grad)

Tensor *t_dirichlet_grad(Tensor *x, Tensor *concentration, Tensor *total) {
  OP_ENTERED(t_dirichlet_grad, "_dirichlet_grad", x, concentration, total);
  if (blocked(x, concentration, total)) return NULL;
  Node *n = node_new(&node__dirichlet_grad, 0, 0, x, concentration, total, NULL);
  return set_history(
      derivative(dirichlet_loops, "_dirichlet_grad_cpu", 3, (Tensor *[]){x, concentration, total}),
      n);
}
