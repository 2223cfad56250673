/** Test suites that need the rig, skipped with the reason where it cannot run. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { AuditReport } from '../../../packages/inspect/src/audit/audit.js';
import { auditOf, expectCleanFile } from '../../../packages/inspect/test/audit/capture-file.js';
import { type Capture, type GuestKernel, Rig, type RigGuest, type RigOptions, type Wiring } from './rig.js';
import { buildRocev2 } from './rocev2.js';

/** `await describeOnRig(...)` at the top level of a test file. */
export async function describeOnRig(
  title: string,
  wiring: Wiring,
  body: () => void,
  kernel?: GuestKernel,
): Promise<void> {
  const refusal = (await Rig.refusal(wiring)) ?? (kernel && (await Rig.kernelRefusal(kernel)));
  if (refusal !== undefined) console.warn(`skipped: ${title}: ${refusal}`);
  describe.skipIf(refusal !== undefined)(title, body);
}

export interface SuiteOptions extends RigOptions {
  /** Rules that the capture breaks, by number, each with the reason; all others are kept. */
  readonly broken?: Readonly<Record<number, string>>;
  /** Whether the capture is audited. Default: true; a tester breaks rules on purpose. */
  readonly isAudited?: boolean;
}

/** Rules that Soft-RoCE does not keep, in any suite. */
const SOFT_ROCE_BREAKS: ReadonlySet<number> = new Set([
  51, // It now and then sends again before its transport timeout is over.
  101, // It gives out QPNs one after another.
]);

/** Without what is known of the guest. */
function ofOurs(report: AuditReport, guest: RigGuest): AuditReport {
  const isKnown = ({ rule, flow }: AuditReport['findings'][number]) =>
    SOFT_ROCE_BREAKS.has(rule) && [guest.ip4, guest.ip6].some((address) => flow.startsWith(`${address} -> `));
  return { ...report, findings: report.findings.filter((finding) => !isKnown(finding)) };
}

/**
 * One rig on a bridge for all tests of a suite, beside a build of what is there: booted before the first, stopped after the last. What passes the first
 * guest's wire is captured into a file that tests may read, and audited when all tests have run; nothing else may capture meanwhile.
 */
export async function describeWithRig(
  title: string,
  { broken = {}, isAudited = true, ...options }: SuiteOptions,
  body: (rig: () => Rig, captureFile: () => string) => void,
): Promise<void> {
  const suite = () => {
    let rig: Rig | undefined;
    let capture: Capture | undefined;
    beforeAll(async () => {
      await buildRocev2();
      rig = await Rig.start(options);
      // Behind the bridge, where the kernel has cut trains of datagrams into packets.
      if (isAudited) capture = await rig.capture({ interface: rig.guests[0].interface! });
    });
    afterAll(() => rig?.stop());
    body(
      () => rig!,
      () => capture!.file,
    );
    test.runIf(isAudited)('both sides have kept the rules that a capture shows', async () => {
      const file = await capture!.stop();
      const report = ofOurs(await auditOf(file), rig!.guests[0]);
      await expectCleanFile(file, report, Object.keys(broken).map(Number));
    });
  };
  await describeOnRig(title, 'bridge', suite, options.kernel);
}
