/* Short-time Fourier transforms and their inverses, composed of other ops like PyTorch's. */
#include <string.h>

#include "fft_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/fft/fft.h"
#include "ops/nn/nn.h"
#include "ops/op.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"

/* Arguments of a call, with defaults for absent ones. Rows of stft and istft have them in the order
 * n_fft, hop_length, win_length, window, center. */
typedef struct {
  const Call *c;
  int64_t n, hop, length; /* samples in a transform, between frames, in the window */
  Tensor *window;         /* NULL: ones */
  bool center;
} Frames;

static Frames frames_of(Call *c) {
  Frames f = {c, arg_int(c, 1), 0, 0, arg_tensor(c, 4), arg_bool(c, 5)};
  f.hop = arg_given(c, 2) ? arg_int(c, 2) : f.n >> 2;
  f.length = arg_given(c, 3) ? arg_int(c, 3) : f.n;
  return f;
}

static void add_flag(Text *t, const Call *c, const char *name, int k) {
  if (arg_given(c, k)) text_format(t, ", %s=%d", name, (int)arg_bool(c, k));
  else text_format(t, ", %s=None", name);
}

static bool is_complex(const Tensor *t) { return t && dtype_is_complex(tensor_dtype(t)); }

/* PyTorch's text for the type of a tensor; complex types have no legacy name. */
static const char *type_text(const Tensor *t) {
  return textf(is_complex(t) ? "CPU%sType" : "torch.%sTensor", legacy(t));
}

/* Adds the arguments with which both begin their error messages. */
static void add_frames(Text *t, const Frames *f) {
  text_format(t, ", n_fft=%lld, hop_length=%lld, win_length=%lld, window=", (Shown)f->n,
              (Shown)f->hop, (Shown)f->length);
  if (f->window) text_format(t, "%s{%s}", type_text(f->window), shape_text(f->window));
  else text_format(t, "None");
}

static bool is_window(const Frames *f) {
  return !f->window || (f->window->ndim == 1 && f->window->sizes[0] == f->length);
}

/* The window with zeros around it, as long as a transform; NULL for ones. */
static Tensor *whole_window(const Frames *f, Tensor *ones) {
  if (f->length == f->n) return f->window;
  int64_t left = (f->n - f->length) / 2, pads[] = {left, f->n - f->length - left};
  return t_constant_pad(f->window ? f->window : ones, (Ints){2, pads}, tensor_wrapped_f(0));
}

/* ------------------------------------------------------------ stft */

enum { STFT_MODE = 6, STFT_NORMALIZED, STFT_ONESIDED, STFT_COMPLEX, STFT_ALIGN };

static void *refuse_stft(const Frames *f, const Tensor *x, const char *why) {
  Text t = {0};
  text_format(&t, "stft(%s%s", type_text(x), shape_text(x));
  add_frames(&t, f);
  text_format(&t, ", normalized=%d", (int)arg_bool(f->c, STFT_NORMALIZED));
  add_flag(&t, f->c, "onesided", STFT_ONESIDED);
  add_flag(&t, f->c, "return_complex", STFT_COMPLEX);
  add_flag(&t, f->c, "align_to_window", STFT_ALIGN);
  const char *text = text_end(&t);
  return text ? fail(ERR_RUNTIME, "%s) : expected %s", text, why) : NULL;
}

static bool check_stft(const Frames *f, const Tensor *x) {
  int64_t length = x->ndim ? x->sizes[x->ndim - 1] : 0;
  if (!dtype_is_float(tensor_dtype(x)) && !is_complex(x))
    refuse_stft(f, x, "a tensor of floating point or complex values");
  else if (x->ndim > 2 || x->ndim < 1) refuse_stft(f, x, "a 1D or 2D tensor");
  else if (f->n <= 0 || f->n > length) /* PyTorch shows win_length here */
    refuse_stft(f, x,
                textf("0 < n_fft < %lld, but got n_fft=%lld", (Shown)length, (Shown)f->length));
  else if (f->hop <= 0)
    refuse_stft(f, x, textf("hop_length > 0, but got hop_length=%lld", (Shown)f->hop));
  else if (f->length <= 0 || f->length > f->n)
    refuse_stft(f, x, textf("0 < win_length <= n_fft, but got win_length=%lld", (Shown)f->length));
  else if (!is_window(f))
    refuse_stft(f, x,
                textf("a 1D window tensor of size equal to win_length=%lld, but got window "
                      "with size %s",
                      (Shown)f->length, shape_text(f->window)));
  return !failed();
}

/* Extends both ends of a signal by half a transform. */
static Tensor *pad_ends(Tensor *x, int64_t n, const char *mode) {
  int64_t extended[MAX_DIM], pads[] = {n >> 1, n >> 1};
  if (blocked(x)) return NULL;
  if (!mode) return fail(ERR_TYPE, "pad(): argument 'mode' (position 3) must be str, not NoneType");
  int rank = x->ndim, more = rank < 3 ? 3 - rank : 0;
  if (rank + more > MAX_DIM) return NULL;
  for (int i = 0; i < more; i++) extended[i] = 1;
  memcpy(extended + more, x->sizes, (size_t)rank * sizeof *extended);
  x = t_pad(t_view(x, rank + more, extended), (Ints){2, pads}, mode, NULL);
  return blocked(x) ? NULL : t_view(x, rank, x->sizes + more);
}

/* Frames as rows: (batch, time) to (batch, frames, n). */
static Tensor *cut_frames(const Frames *f, Tensor *x) {
  if (blocked(x)) return NULL;
  int64_t length = x->sizes[1], frames = 1 + (length - f->n) / f->hop;
  if (arg_given(f->c, STFT_ALIGN) && arg_bool(f->c, STFT_ALIGN)) {
    frames = 1 + (length - f->length) / f->hop;
    int64_t left = (f->n - f->length) / 2, pads[] = {left, f->n - f->length - left};
    x = t_constant_pad(x, (Ints){2, pads}, tensor_wrapped_f(0));
  }
  if (blocked(x)) return NULL;
  return t_as_strided(x, 3, (int64_t[]){x->sizes[0], frames, f->n},
                      (int64_t[]){x->strides[0], f->hop * x->strides[1], x->strides[1]}, -1);
}

Tensor *t_stft(Call *c, Tensor *x) {
  OP_ENTERED_AS(t_stft(c, x), "stft", x, c);
  Frames f = frames_of(c);
  if (blocked(x)) return NULL;
  bool aligns = arg_given(c, STFT_ALIGN), returns = arg_given(c, STFT_COMPLEX);
  if (f.center && aligns)
    return fail(ERR_RUNTIME, "stft align_to_window should only be set when center = false");
  if (f.center) x = pad_ends(x, f.n, arg_given(c, STFT_MODE) ? arg_str(c, STFT_MODE) : NULL);
  if (blocked(x)) return NULL;
  if (!f.window)
    WARN_ONCE("A window was not provided. A rectangular window will be applied,which is known to "
              "cause spectral leakage. Other windows such as torch.hann_window or "
              "torch.hamming_window are recommended to reduce spectral leakage.To suppress this "
              "warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, "
              "device=<device>)`.");
  bool complex = returns ? arg_bool(c, STFT_COMPLEX) : is_complex(x) || is_complex(f.window);
  if (!complex && !returns)
    return fail(ERR_RUNTIME,
                "stft requires the return_complex parameter be given for real inputs, and will "
                "further require that return_complex=True in a future PyTorch release.");
  if (!complex)
    WARN_ONCE("stft with return_complex=False is deprecated. In a future pytorch release, stft "
              "will return complex tensors for all inputs, and return_complex=False will raise an "
              "error.\nNote: you can still call torch.view_as_real on the complex output to "
              "recover the old return format.");
  if (!check_stft(&f, x)) return NULL;
  int rank = x->ndim;
  Tensor *ones = f.window ? NULL : tensor_full(1, &f.length, tensor_dtype(x), 1);
  Tensor *window = whole_window(&f, ones);
  Tensor *y = cut_frames(&f, rank == 1 ? t_unsqueeze(x, 0) : x);
  if (window) y = t_mul(y, window);
  if (blocked(y)) return NULL;
  bool onesided = arg_given(c, STFT_ONESIDED) ? arg_bool(c, STFT_ONESIDED) : !is_complex(y);
  if (is_complex(y) && onesided)
    return fail(ERR_RUNTIME, "Cannot have onesided output if window or input is complex");
  int64_t norm = arg_bool(c, STFT_NORMALIZED) ? NORM_BY_ROOT_N : NORM_NONE;
  y = is_complex(y) ? t_fft_c2c(y, ONE_DIM(2), norm, true)
                    : t_fft_r2c(y, ONE_DIM(2), norm, onesided);
  y = shape_take_fresh(y, t_transpose(y, 1, 2));
  if (rank == 1) y = shape_take_fresh(y, t_squeeze_dim(y, 0));
  return complex ? y : t_view_as_real(y);
}

/* ------------------------------------------------------------ istft */

enum { ISTFT_NORMALIZED = 6, ISTFT_ONESIDED, ISTFT_LENGTH, ISTFT_COMPLEX };

static void *refuse_istft(const Frames *f, const Tensor *x, const char *why) {
  Text t = {0};
  text_format(&t, "istft(%s%s", type_text(x), shape_text(x));
  add_frames(&t, f);
  text_format(&t, ", center=%d, normalized=%d", (int)f->center,
              (int)arg_bool(f->c, ISTFT_NORMALIZED));
  add_flag(&t, f->c, "onesided", ISTFT_ONESIDED);
  if (arg_given(f->c, ISTFT_LENGTH))
    text_format(&t, ", length=%lld", (Shown)arg_int(f->c, ISTFT_LENGTH));
  else text_format(&t, ", length=None");
  text_format(&t, ", return_complex=%d", (int)arg_bool(f->c, ISTFT_COMPLEX));
  const char *text = text_end(&t);
  return text ? fail(ERR_RUNTIME, "%s) %s", text, why) : NULL;
}

static bool check_istft(const Frames *f, const Tensor *x, bool onesided) {
  int64_t rows = x->sizes[x->ndim - 2];
  if (x->numel == 0) refuse_istft(f, x, ": input tensor cannot be empty.");
  else if (x->ndim != 2 && x->ndim != 3)
    refuse_istft(f, x,
                 textf(": expected a tensor with 3 or 4 dimensions, but got %d", x->ndim + 1));
  else if (rows != (onesided ? f->n / 2 + 1 : f->n))
    refuse_istft(f, x,
                 textf(": expected the frequency dimension (3rd to the last) of the input tensor "
                       "to match n_fft%s when onesided=%s, but got %lld",
                       onesided ? " / 2 + 1" : "", onesided ? "True" : "False", (Shown)rows));
  else if (f->hop <= 0 || f->hop > f->length)
    refuse_istft(f, x, ": expected 0 < hop_length <= win_length");
  else if (f->length <= 0 || f->length > f->n)
    refuse_istft(f, x, ": expected 0 < win_length <= n_fft");
  else if (!is_window(f))
    refuse_istft(f, x, ": Invalid window shape. window has to be 1D and length of `win_length`");
  return !failed();
}

/* (batch, frequencies, frames) to the frames of signals, (batch, frames, n). */
static Tensor *signals(const Frames *f, Tensor *x, bool onesided) {
  const Call *c = f->c;
  int64_t norm = arg_bool(c, ISTFT_NORMALIZED) ? NORM_BY_ROOT_N : NORM_BY_N;
  if (blocked(x)) return NULL;
  if (arg_bool(c, ISTFT_COMPLEX)) {
    if (!onesided) return t_fft_c2c(x, ONE_DIM(2), norm, false);
    return fail(ERR_RUNTIME, "Cannot have onesided output if window or input is complex");
  }
  if (is_complex(f->window))
    return fail(ERR_RUNTIME, "Complex windows are incompatible with return_complex=False");
  if (!onesided) x = t_slice(x, -1, 0, f->n / 2 + 1, 1);
  return t_fft_c2r(x, ONE_DIM(2), norm, f->n);
}

Tensor *t_istft(Call *c, Tensor *x) {
  OP_ENTERED_AS(t_istft(c, x), "istft", x, c);
  Frames f = frames_of(c);
  if (blocked(x)) return NULL;
  if (!f.window)
    WARN_ONCE("A window was not provided. A rectangular window will be applied.Please provide the "
              "same window used by stft to make the inversion lossless.To suppress this warning "
              "and use a rectangular window, explicitly set `window=torch.ones(n_fft, "
              "device=<device>)`.");
  if (!is_complex(x))
    return fail(ERR_RUNTIME, "istft requires a complex-valued input tensor matching the output "
                             "from stft with return_complex=True.");
  if (x->ndim < 2) /* numbers of its view as reals */
    return fail(ERR_INDEX,
                "Dimension out of range (expected to be in range of [%d, %d], but got %d)",
                -x->ndim - 1, x->ndim, -x->ndim - 2);
  int64_t rows = x->sizes[x->ndim - 2], frames = x->sizes[x->ndim - 1];
  bool onesided = arg_given(c, ISTFT_ONESIDED) ? arg_bool(c, ISTFT_ONESIDED) : rows != f.n;
  if (!check_istft(&f, x, onesided)) return NULL;
  int64_t whole = f.n + f.hop * (frames - 1);
  DType real = dtype_real(tensor_dtype(x));
  Tensor *ones = tensor_full(1, &f.length, real, 1), *window = whole_window(&f, ones);
  if (!window) window = ones;
  Tensor *y = t_view_as_real(t_resolve_conj(x));
  if (x->ndim == 2) y = t_unsqueeze(y, 0);
  y = signals(&f, t_view_as_complex(t_transpose(y, 1, 2)), onesided);
  y = t_mul(y, t_view(window, 3, (int64_t[]){1, 1, f.n}));
  if (blocked(y)) return NULL;
  y = t_unfold_backward(y, (Ints){2, (int64_t[]){y->sizes[0], whole}}, 1, f.n, f.hop);
  Tensor *squares = t_expand(t_square(window), 3, (int64_t[]){1, frames, f.n});
  Tensor *envelope = t_unfold_backward(squares, (Ints){2, (int64_t[]){1, whole}}, 1, f.n, f.hop);
  int64_t start = f.center ? f.n / 2 : 0, end = f.center ? whole - f.n / 2 : whole;
  if (arg_given(c, ISTFT_LENGTH)) end = start + arg_int(c, ISTFT_LENGTH);
  y = t_slice(y, 1, start, end, 1);
  envelope = t_slice(envelope, 1, start, end, 1);
  Tensor *lowest = WITHOUT_GRAD(t_min(t_abs(envelope)));
  if (blocked(y, lowest)) return NULL;
  if (!tensor_absent(lowest) && tensor_get_f(lowest, 0) < 1e-11)
    return refuse_istft(&f, x, "window overlap add min: 1\n[ CPUBoolType{} ]");
  y = t_div(y, envelope);
  if (x->ndim == 2) y = t_squeeze_dim(y, 0);
  if (end > whole && !failed()) {
    WARN_ONCE("The length of signal is shorter than the length parameter. Result is being padded "
              "with zeros in the tail. Please check your center and hop_length settings.");
    y = t_constant_pad(y, (Ints){2, (int64_t[]){0, end - whole}}, tensor_wrapped_f(0));
  }
  return y;
}
