// @ts-check
/** Steps in turns, repetition after repetition, within a time. */

/**
 * Runs all steps `reps` times, or until the time is over: then a step does not begin, and in the first repetition it counts as failed. After the first repetition
 * a step begins only if what it has taken at most is left. What a step throws counts as the failure of all its samples that it had not added.
 * @param {readonly import('./processes.js').Step[]} steps
 * @param {import('./samples.js').Samples} samples
 * @param {{reps: number, deadlineMs: number, nowMs: () => number, progress: (text: string) => void}} options
 * @returns {Promise<number>} repetitions begun
 */
export async function runSteps(steps, samples, { reps, deadlineMs, nowMs, progress }) {
  const longestMs = steps.map(() => 0);
  for (let rep = 0; rep < reps; rep++) {
    for (const [i, step] of steps.entries()) {
      if (step.once === true && rep > 0) continue;
      if (nowMs() + longestMs[i] >= deadlineMs) {
        if (rep > 0) return rep + 1;
        for (const name of step.samples) samples.fail(name, rep, 'no time was left');
        continue;
      }
      const startMs = nowMs();
      const missing = new Set(step.samples);
      let outcome = 'done';
      try {
        await step.run((name, sample) => {
          samples.add(name, rep, sample);
          missing.delete(name);
        });
      } catch (error) {
        outcome = error instanceof Error ? error.message : String(error);
      }
      for (const name of missing) samples.fail(name, rep, outcome === 'done' ? 'no value' : outcome);
      longestMs[i] = Math.max(longestMs[i], nowMs() - startMs);
      progress(`repetition ${rep + 1} of ${reps}, ${step.name}: ${outcome}`);
    }
  }
  return reps;
}
