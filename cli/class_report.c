#include "class_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/commit.h"
#include "io/csv.h"
#include "io/json_text.h"
#include "io/path.h"

static const size_t max_file_bytes = (size_t)1 << 30;

const char *sx_report_class_name(const sx_class_report *r, int i, char number[12])
{
    if (i < r->info->n_classes) {
        return r->info->class_names[i];
    }
    snprintf(number, 12, "%d", i);
    return number;
}

/* ---- CSV ---- */

static void csv_class(sx_buf *out, const sx_class_report *r, int i)
{
    char number[12];
    sx_csv_text(out, sx_report_class_name(r, i, number));
}

/* Empty if undefined. */
static void csv_ratio(sx_buf *out, double value)
{
    if (isnan(value)) {
        sx_buf_putc(out, ',');
    } else {
        sx_csv_float(out, (float)value);
    }
}

static sx_status put_classes(sx_buf *out, const sx_class_report *r)
{
    const sx_class_scores *s = r->scores;
    sx_buf_puts(out, "class,examples,predicted,correct,precision,recall,f1\n");
    for (int i = 0; i < s->n; i++) {
        sx_class_score score = sx_class_score_of(s, i);
        csv_class(out, r, i);
        sx_csv_int(out, s->support[i]);
        sx_csv_int(out, s->predicted[i]);
        sx_csv_int(out, s->confusion[(int64_t)i * s->n + i]);
        csv_ratio(out, score.precision);
        csv_ratio(out, score.recall);
        csv_ratio(out, score.f1);
        sx_csv_end(out);
    }
    return sx_buf_status(out);
}

static sx_status put_confusion(sx_buf *out, const sx_class_report *r)
{
    int n = r->scores->n;
    sx_csv_text(out, "label");
    for (int i = 0; i < n; i++) {
        csv_class(out, r, i);
    }
    sx_csv_end(out);
    for (int label = 0; label < n; label++) {
        csv_class(out, r, label);
        for (int i = 0; i < n; i++) {
            sx_csv_int(out, r->scores->confusion[(int64_t)label * n + i]);
        }
        sx_csv_end(out);
    }
    return sx_buf_status(out);
}

static sx_status put_mistakes(sx_buf *out, const sx_class_report *r)
{
    sx_buf_puts(out, "id,file,label,class,label_probability,probability\n");
    for (int64_t i = 0; i < r->scores->n_mistakes; i++) {
        const sx_mistake *m = &r->scores->mistakes[i];
        const char *file = sx_origin_file(r->origin, m->record);
        sx_csv_int(out, m->number);
        sx_csv_text(out, file != NULL ? file : "");
        csv_class(out, r, m->label);
        csv_class(out, r, m->classid);
        sx_csv_float(out, m->label_probability);
        sx_csv_float(out, m->probability);
        sx_csv_end(out);
    }
    return sx_buf_status(out);
}

/* ---- JSON ---- */

/* NaN (undefined) becomes null. */
static json_t *number_json(double value)
{
    json_t *number = json_real(value);
    return number != NULL ? number : json_null();
}

static json_t *score_json(const sx_class_score *score)
{
    return json_pack("{s:o, s:o, s:o}", "precision", number_json(score->precision), "recall",
                     number_json(score->recall), "f1", number_json(score->f1));
}

static json_t *classes_json(const sx_class_report *r)
{
    json_t *classes = json_array();
    for (int i = 0; i < r->scores->n; i++) {
        char number[12];
        sx_class_score score = sx_class_score_of(r->scores, i);
        json_t *one = json_object();
        json_object_set_new(one, "class", json_string(sx_report_class_name(r, i, number)));
        json_object_set_new(one, "examples", json_integer(r->scores->support[i]));
        json_object_set_new(one, "predicted", json_integer(r->scores->predicted[i]));
        json_t *ratios = score_json(&score);
        json_object_update(one, ratios);
        json_decref(ratios);
        json_array_append_new(classes, one);
    }
    return classes;
}

static json_t *confusion_json(const sx_class_scores *s)
{
    json_t *rows = json_array();
    for (int label = 0; label < s->n; label++) {
        json_t *row = json_array();
        for (int i = 0; i < s->n; i++) {
            json_array_append_new(row, json_integer(s->confusion[(int64_t)label * s->n + i]));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *worst_json(const sx_class_report *r)
{
    json_t *worst = json_array();
    for (int64_t i = 0; i < SX_MIN(r->scores->n_mistakes, (int64_t)r->pictures); i++) {
        const sx_mistake *m = &r->scores->mistakes[i];
        char label[12], classid[12];
        json_array_append_new(
            worst, json_pack("{s:I, s:s?, s:s, s:s, s:o, s:o}", "id", (json_int_t)m->number, "file",
                             sx_origin_file(r->origin, m->record), "label",
                             sx_report_class_name(r, m->label, label), "class",
                             sx_report_class_name(r, m->classid, classid), "label_probability",
                             number_json((double)m->label_probability), "probability",
                             number_json((double)m->probability)));
    }
    return worst;
}

static sx_status put_json(sx_buf *out, const sx_class_report *r)
{
    const sx_class_scores *s = r->scores;
    sx_class_score macro, weighted;
    sx_class_scores_average(s, &macro, &weighted);
    json_t *metrics = json_object();
    json_object_set_new(metrics, "loss", number_json(r->result->loss));
    for (int i = 0; i < r->result->n_metrics; i++) {
        json_object_set_new(metrics, r->result->metrics[i].name,
                            number_json(r->result->metrics[i].value));
    }
    json_t *root =
        json_pack("{s:s, s:s, s:I, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "run",
                  r->run, "model", r->info->model, "step", (json_int_t)r->result->step, "data",
                  r->data, "examples", (json_int_t)s->examples, "correct", (json_int_t)s->correct,
                  "metrics", metrics, "macro", score_json(&macro), "weighted",
                  score_json(&weighted), "classes", classes_json(r), "confusion", confusion_json(s),
                  "mistakes", (json_int_t)s->n_mistakes, "worst", worst_json(r));
    char *text = NULL;
    sx_status status = sx_json_text(root, JSON_COMPACT, &text);
    json_decref(root);
    SX_TRY(status);
    sx_buf_printf(out, "%s\n", text);
    sx_free(text);
    return sx_buf_status(out);
}

/* ---- Files ---- */

typedef sx_status put_fn(sx_buf *out, const sx_class_report *report);

static const struct {
    const char *name;
    put_fn *put;
} files[] = {
    {"classes.csv", put_classes},       {"confusion.csv", put_confusion},
    {"mistakes.csv", put_mistakes},     {"report.json", put_json},
    {"report.html", sx_put_class_page},
};

static sx_status write_file(const sx_class_report *report, const char *dir, size_t i,
                            sx_commit *commit)
{
    char *path = NULL;
    sx_commit_file *file = NULL;
    sx_buf text;
    SX_TRY(sx_path_join(dir, files[i].name, &path));
    sx_status status = sx_commit_add(commit, path, &file);
    sx_free(path);
    SX_TRY(status);
    sx_buf_init(&text, max_file_bytes);
    status = files[i].put(&text, report);
    if (status == SX_OK) {
        status = sx_commit_write(file, text.data, text.size);
    }
    sx_buf_deinit(&text);
    return sx_status_annotate(status, __FILE__, __LINE__, "%s/%s", dir, files[i].name);
}

sx_status sx_class_report_write(const sx_class_report *report, const char *dir)
{
    sx_commit *commit = NULL;
    SX_TRY(sx_dir_create(dir));
    SX_TRY(sx_commit_create(&commit));
    sx_status status = SX_OK;
    for (size_t i = 0; i < SX_COUNT(files) && status == SX_OK; i++) {
        status = write_file(report, dir, i, commit);
    }
    if (status == SX_OK) {
        status = sx_commit_finish(commit);
    }
    sx_commit_destroy(commit);
    return status;
}
