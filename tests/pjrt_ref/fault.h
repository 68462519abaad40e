/* What the plugin is told by its environment.
 *
 * SX_PJRT_REF, settings: "devices=8,limit=1000000,delay=100,platform=tpu,kind=TPU v5 lite" (how
 * many devices, 4; bytes of memory of each, no limit; microseconds before each piece of work, 20;
 * what it says that it is, "cpu"); "compile=1500": milliseconds that a compile takes, 0;
 * "step=20000,mib=5000": microseconds that each iteration of a program's own loop takes at least,
 * or the program if it has none, and each copy to a device per MiB, 0; "out=9000": microseconds
 * that each copy from a device takes, 0; "profiler=1": it has a profiler (profiler.h), which hands
 * out a copy; 2: its own memory; 3: which names operations by their kind alone, and each of a node
 * as a part of it; "within=1": programs are run within the call that asks for it, as
 * XLA's CPU does
 *
 * SX_PJRT_REF_FAULT, how it misbehaves: "POINT[:N[:WORDS]]", several divided by ";". N is which
 * call of that kind since the client was made: the seventh for 7, every one for 0 or nothing. WORDS
 * take the place of the point's own. "execute:7:device lost;put:0" is two. The points:
 *
 *   while it is loaded    abort, exit, null, hang, noise (words on stderr, and nothing else),
 *                         version (WORDS are "1.0"), short (a table of few slots), missing (WORDS
 *                         are a slot's name)
 *   in a call             initialize, client, compile, serialize, deserialize, put, get, memory,
 *                         profiler (its start), collect (its answer): an error
 *                         oom, lost: Execute refuses (out of memory; device lost)
 *                         later: Execute accepts, and the execution fails
 *                         stuck: it never ends
 *   in all calls          strict (but of errors): argument structs must have exactly the size of
 * version 0.81 */
#ifndef PJRT_REF_FAULT_H
#define PJRT_REF_FAULT_H

#include <stdbool.h>

#include <sextant/status.h>

enum { REF_WORDS = 256 };

/* Is this point's fault due? Counts the call. `words` (may be NULL) gets the words given, or "". */
bool ref_fault_due(const char *point, char words[REF_WORDS]);
/* The same as an error of the point's code. */
SX_MUST_USE sx_status ref_fault(const char *point);
/* Calls are counted anew. */
void ref_faults_reset(void);

/* A setting's number, or `otherwise`; its text into `buffer`, or `otherwise`. */
long ref_setting(const char *name, long otherwise);
const char *ref_setting_text(const char *name, const char *otherwise, char buffer[REF_WORDS]);

#endif
