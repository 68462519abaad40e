/* The picture of `compile --memory`; see compile_memory.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "compile_memory.h"
#include "svg.h"

enum {
    WIDTH = 1200,
    LEFT = 90,
    RIGHT = 24,
    TOP = 120,
    HEIGHT = 600,
    BOTTOM = 60,
    SHOWN = 4,    /* arenas of shards at most; of more, two */
    LETTERS = 14, /* a block of this height has its name in it */
};

typedef struct kind {
    const char *name, *color;
} kind;

static const kind forward = {"values of the forward pass", "#9ecae1"},
                  backward = {"gradients and updates", "#fdd28a"},
                  common = {"common to all shards", "#b5dfa0"},
                  scratch = {"scratch memory of a kernel", "#cfc0e6"},
                  again = {"computed again", "#f4a6a0"};

static const kind *kind_of(const sx_cpu_mapped *b)
{
    const bool back =
        strncmp(b->layer, "gradients/", 10) == 0 || strncmp(b->layer, "training/", 9) == 0;
    return b->scratch  ? &scratch
           : b->common ? &common
           : b->again  ? &again
           : back      ? &backward
                       : &forward;
}

typedef struct picture {
    sx_buf *out;
    const sx_memory_report *r;
    int arenas;                /* of shards, that are drawn, */
    int64_t bytes;             /* and how high that is */
    double per_step, per_byte; /* pixels */
} picture;

static void put_head(const picture *p)
{
    const kind *const kinds[] = {&forward, &backward, &common, &scratch, &again};
    const sx_memory_report *r = p->r;
    const int shown = r->plan->map->again_steps > 0 ? 5 : 4;
    sx_buf text;
    double x = LEFT;
    sx_buf_init(&text, 1 << 12);
    sx_put_memory_title(&text, r);
    sx_svg_text(p->out, 24, 36, SX_SVG_HEADING, "start", SX_SVG_INK, sx_buf_text(&text));
    sx_buf_reset(&text);
    sx_buf_puts(&text, "temporaries: ");
    sx_buf_put_size(&text, (double)r->temporaries);
    sx_buf_printf(&text, ", %.1f %% more than the ", sx_memory_excess(r));
    sx_buf_put_size(&text, (double)r->least);
    sx_buf_printf(&text, " that are alive at once, in step %d of %d", r->plan->map->least_step + 1,
                  r->plan->map->n_steps);
    sx_svg_text(p->out, 24, 60, SX_SVG_NORMAL, "start", SX_SVG_INK, sx_buf_text(&text));
    sx_buf_deinit(&text);
    for (int i = 0; i < shown; i++) {
        sx_svg_rect(p->out, x, 76, 12, 12, kinds[i]->color, NULL);
        sx_svg_text(p->out, x + 18, 86, SX_SVG_NORMAL - 1, "start", SX_SVG_INK, kinds[i]->name);
        x += 850.0 / shown;
    }
    sx_svg_line(p->out, x, 82, x + 24, 82, "#c2413b");
    sx_svg_text(p->out, x + 30, 86, SX_SVG_NORMAL - 1, "start", SX_SVG_INK, "where most is alive");
}

/* `base`: the address of the block's arena. What ends above the picture is left out. */
static void put_block(const picture *p, const sx_cpu_mapped *b, int64_t base)
{
    const int64_t address = base + b->life.offset;
    const double x = LEFT + b->life.first * p->per_step;
    const double width = (b->life.last - b->life.first + 1) * p->per_step;
    const double height = (double)b->life.bytes * p->per_byte;
    const double y = TOP + HEIGHT - (double)(address + b->life.bytes) * p->per_byte;
    sx_buf about;
    if (address + b->life.bytes > p->bytes) {
        return;
    }
    sx_buf_init(&about, 1 << 12);
    sx_buf_printf(&about, "%s\n", b->what);
    sx_buf_put_size(&about, (double)b->life.bytes);
    sx_buf_printf(&about, " at %" PRId64 ", steps %d … %d", address, b->life.first + 1,
                  b->life.last + 1);
    sx_svg_rect(p->out, x, y, SX_MAX(width - 0.4, 0.4), SX_MAX(height - 0.4, 0.3),
                kind_of(b)->color, sx_buf_text(&about));
    if (height >= LETTERS) {
        sx_svg_label(p->out, x + 4, y + height / 2 + 4, width - 8, SX_SVG_INK, b->layer);
    }
    sx_buf_deinit(&about);
}

/* A round number of bytes for about five marks on an axis. */
static double round_bytes(double most)
{
    double step = 1;
    while (step * 5 < most) {
        step *= 2;
    }
    return step;
}

static void put_addresses(const picture *p)
{
    const double width = WIDTH - LEFT - RIGHT, bottom = TOP + HEIGHT;
    sx_svg_rect(p->out, LEFT, TOP, width, HEIGHT, "#f5f6f8", NULL);
    for (double at = 0, step = round_bytes((double)p->bytes); at <= (double)p->bytes; at += step) {
        sx_buf size;
        const double y = bottom - at * p->per_byte;
        sx_buf_init(&size, 64);
        sx_buf_put_size(&size, at);
        sx_svg_line(p->out, LEFT, y, LEFT + width, y, SX_SVG_GRID);
        sx_svg_text(p->out, LEFT - 6, y + 4, SX_SVG_SMALL, "end", SX_SVG_FAINT, sx_buf_text(&size));
        sx_buf_deinit(&size);
    }
}

static void put_blocks(const picture *p)
{
    const sx_cpu_memory_map *map = p->r->plan->map;
    for (int i = 0; i < map->n; i++) {
        for (int s = 0; s < (map->blocks[i].common ? 1 : p->arenas); s++) {
            put_block(p, &map->blocks[i], s * map->shard_bytes);
        }
    }
    for (int s = 1; s <= p->arenas && map->shards > 1; s++) {
        const double y = TOP + HEIGHT - (double)(s * map->shard_bytes) * p->per_byte;
        char title[80];
        snprintf(title, sizeof(title),
                 s == p->arenas && s < map->shards ? "shard %d; %d more are not drawn" : "shard %d",
                 s - 1, map->shards - s);
        sx_svg_line(p->out, LEFT, y, WIDTH - RIGHT, y, SX_SVG_FAINT);
        sx_svg_text(p->out, WIDTH - RIGHT - 6, y + 14, SX_SVG_SMALL, "end", SX_SVG_FAINT, title);
    }
    const double x = LEFT + (map->least_step + 0.5) * p->per_step;
    sx_svg_line(p->out, x, TOP, x, TOP + HEIGHT, "#c2413b");
}

static void put_steps(const picture *p, double y)
{
    const int n = p->r->plan->map->n_steps;
    int step = 1;
    while (step * 12 < n) {
        step = step % 3 == 2 ? step / 2 * 5 : step * 2;
    }
    for (int at = 0; at < n; at += step) {
        char text[16];
        snprintf(text, sizeof(text), "%d", at + 1);
        sx_svg_text(p->out, LEFT + (at + 0.5) * p->per_step, y + 16, SX_SVG_SMALL, "middle",
                    SX_SVG_FAINT, text);
    }
    sx_svg_text(p->out, LEFT, y + 36, SX_SVG_SMALL, "start", SX_SVG_FAINT,
                "steps, in the order in which they run");
}

sx_status sx_put_memory_svg(sx_buf *out, const sx_memory_report *r)
{
    const sx_cpu_memory_map *map = r->plan->map;
    const int arenas = map->shards <= SHOWN ? map->shards : 2;
    const int64_t bytes = arenas < map->shards ? arenas * map->shard_bytes : map->bytes;
    const picture p = {.out = out,
                       .r = r,
                       .arenas = arenas,
                       .bytes = bytes,
                       .per_step = (double)(WIDTH - LEFT - RIGHT) / SX_MAX(map->n_steps, 1),
                       .per_byte = (double)HEIGHT / (double)SX_MAX(bytes, 1)};
    sx_svg_begin(out, WIDTH, TOP + HEIGHT + BOTTOM);
    put_head(&p);
    put_addresses(&p);
    put_blocks(&p);
    put_steps(&p, TOP + HEIGHT);
    sx_svg_end(out);
    return sx_buf_status(out);
}
