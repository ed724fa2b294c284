/* Levels of vmap and of other transforms; see levels.h. */
#include "tape/levels.h"

#include <string.h>

#include "ground/status.h"
#include "tensor/tensor.h"

uint32_t vmap_levels;
static uint32_t taken; /* levels in use by any thread */
static struct {
  int64_t size;
  Randomness randomness;
} levels[MAX_LEVELS];

uint32_t levels_active(void) { return vmap_levels & taken; }

uint32_t levels_with(Randomness r) {
  uint32_t found = 0;
  for (uint32_t bits = levels_active(); bits; bits &= bits - 1)
    if (levels[highest(bits & -bits) - 1].randomness == r) found |= bits & -bits;
  return found;
}

int32_t vmap_enter(int64_t size, const char *randomness) {
  int32_t level = highest(levels_active()) + 1;
  while (level <= MAX_LEVELS && taken & bit_of(level)) level++;
  if (level > MAX_LEVELS) fail(ERR_RUNTIME, "vmap: at most %d levels can be nested", MAX_LEVELS);
  if (failed()) return 0;
  static const char initials[] = "edst"; /* of the members of Randomness, in order */
  const char *kind = strchr(initials, randomness[0]);
  levels[level - 1].size = size;
  levels[level - 1].randomness = kind && *kind ? (Randomness)(kind - initials) : RANDOM_ERROR;
  taken |= bit_of(level);
  vmap_concerns += levels[level - 1].randomness != TRANSFORM;
  return level;
}

void vmap_exit(int32_t level) {
  if (level < 1 || level > MAX_LEVELS || !(taken & bit_of(level))) return;
  taken &= ~bit_of(level);
  vmap_concerns -= levels[level - 1].randomness != TRANSFORM;
}

bool vmap_may_draw(void) {
  if (!levels_with(RANDOM_ERROR)) return true;
  fail(ERR_RUNTIME,
       "vmap: called random operation while in randomness error mode. Please either use the 'same' "
       "or 'different' randomness flags on vmap or perform the randomness operation out of vmap");
  return false;
}

int64_t level_size(int32_t level) { return levels[level - 1].size; }

bool vmap_refuses(const char *method, const char *more) {
  if (levels_active())
    fail(ERR_RUNTIME,
         "You are attempting to call Tensor.%s()%s inside of a function being transformed by a "
         "functorch transform. This is unsupported, please attempt to use the functorch transforms "
         "(e.g. grad, vjp, jacrev, jacfwd, hessian) or call %s() outside of a function being "
         "transformed instead.",
         method, more, method);
  return failed();
}

bool vmap_refuses_leaf(void) {
  return vmap_refuses("requires_grad_", " (or perhaps using torch.autograd.functional.* APIs)");
}

bool vmap_refuses_backward(void) {
  if (levels_active())
    fail(ERR_RUNTIME, "backward() called inside a functorch transform. This is not supported, "
                      "please use functorch.grad or functorch.vjp instead or call backward() "
                      "outside of functorch transforms.");
  return failed();
}
