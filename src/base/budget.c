#include "base/budget.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"

void sx_budget_init(sx_budget *budget, const char *name, size_t limit_bytes, sx_budget *parent)
{
    budget->name = name;
    budget->limit_bytes = limit_bytes;
    budget->parent = parent;
    atomic_init(&budget->used_bytes, 0);
    atomic_init(&budget->refused_by, NULL);
    atomic_init(&budget->refused_bytes, 0);
}

static size_t used(const sx_budget *budget)
{
    return atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
}

/* Whether `bytes` fit above `held`. */
static bool fits(const sx_budget *budget, size_t held, size_t bytes)
{
    size_t sum;
    return sx_add_size(held, bytes, &sum) &&
           (budget->limit_bytes == 0 || sum <= budget->limit_bytes);
}

/* Charges one budget, not those above it. */
static bool charge_one(sx_budget *budget, size_t bytes)
{
    size_t held = used(budget);
    do {
        if (!fits(budget, held, bytes)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&budget->used_bytes, &held, held + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool sx_budget_charge(sx_budget *budget, size_t bytes)
{
    for (sx_budget *at = budget; at != NULL; at = at->parent) {
        if (charge_one(at, bytes)) {
            continue;
        }
        for (sx_budget *undo = budget; undo != at; undo = undo->parent) {
            atomic_fetch_sub_explicit(&undo->used_bytes, bytes, memory_order_relaxed);
        }
        atomic_store_explicit(&budget->refused_bytes, bytes, memory_order_relaxed);
        atomic_store_explicit(&budget->refused_by, at, memory_order_relaxed);
        return false;
    }
    if (budget != NULL) {
        atomic_store_explicit(&budget->refused_by, NULL, memory_order_relaxed);
    }
    return true;
}

void sx_budget_release(sx_budget *budget, size_t bytes)
{
    for (; budget != NULL; budget = budget->parent) {
        atomic_fetch_sub_explicit(&budget->used_bytes, bytes, memory_order_relaxed);
    }
}

void sx_budget_release_all(sx_budget *budget)
{
    sx_budget_release(budget, used(budget));
}

bool sx_budget_grow(sx_budget *budget, void **array, int *capacity, int wanted, size_t elem_bytes)
{
    size_t more;
    if (!sx_mul_size((size_t)(wanted - *capacity), elem_bytes, &more) ||
        !sx_budget_charge(budget, more)) {
        return false;
    }
    void *grown = sx_realloc(*array, (size_t)wanted, elem_bytes);
    if (grown == NULL) {
        sx_budget_release(budget, more);
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

size_t sx_budget_used(const sx_budget *budget)
{
    return used(budget);
}

bool sx_budget_has_room(const sx_budget *budget, size_t bytes, size_t keep_free)
{
    size_t held;
    return sx_add_size(used(budget), keep_free, &held) && fits(budget, held, bytes);
}

static const sx_budget *refuser(const sx_budget *budget)
{
    return budget == NULL ? NULL : atomic_load_explicit(&budget->refused_by, memory_order_relaxed);
}

bool sx_budget_refused(const sx_budget *budget)
{
    return refuser(budget) != NULL;
}

bool sx_budget_never_fits(const sx_budget *budget)
{
    const sx_budget *by = refuser(budget);
    const size_t bytes = by == NULL ? 0 : atomic_load(&budget->refused_bytes);
    return by != NULL && !fits(by, used(budget), bytes);
}

sx_status sx_budget_error(const sx_budget *budget)
{
    const sx_budget *by = refuser(budget);
    if (by == NULL) {
        return sx_no_memory("for a request");
    }
    const size_t more = atomic_load(&budget->refused_bytes);
    return sx_error(
        SX_RESOURCE_EXHAUSTED,
        "%zu byte%s more would exceed the memory limit of %s: %zu of %zu bytes are in use%s", more,
        more == 1 ? "" : "s", by->name, used(by), by->limit_bytes,
        sx_budget_never_fits(budget) ? "" : "; try again later");
}

sx_status sx_budget_over(const sx_budget *budget, const char *what, size_t bytes)
{
    const sx_budget *by = refuser(budget);
    sx_buf text;
    if (by == NULL) {
        return sx_no_memory("for %s", what);
    }
    sx_buf_init(&text, 4096);
    sx_buf_puts(&text, what);
    if (bytes > 0) {
        sx_buf_puts(&text, " of ");
        sx_buf_put_size(&text, (double)bytes);
    }
    sx_buf_printf(&text, " would exceed the memory limit of %s: ", by->name);
    sx_buf_put_size(&text, (double)used(by));
    sx_buf_puts(&text, " of ");
    sx_buf_put_size(&text, (double)by->limit_bytes);
    sx_status status = sx_error(SX_RESOURCE_EXHAUSTED, "%s in use", sx_buf_text(&text));
    sx_buf_deinit(&text);
    return status;
}

sx_status sx_budget_explain(const sx_budget *budget, const char *what, sx_status status)
{
    if (!sx_status_is_no_memory(status) || !sx_budget_refused(budget)) {
        return status;
    }
    sx_status_free(status);
    return sx_budget_over(budget, what, 0);
}
