import { writeFileSync } from 'node:fs';

/** A reporter for tstyche that writes its totals to the file that TYPE_TEST_COUNTS names. */
export default class CountReporter {
  on([event, { result }]) {
    if (event !== 'run:end') return;
    const { testCounts, fileCounts } = result;
    const counts = {
      passed: testCounts.passed,
      // A file can fail outside of any test, by a compile error.
      failed: Math.max(testCounts.failed, fileCounts.failed),
      skipped: testCounts.skipped + testCounts.todo + testCounts.fixme,
    };
    writeFileSync(process.env.TYPE_TEST_COUNTS, JSON.stringify(counts));
  }
}
