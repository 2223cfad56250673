/** fio in a guest: jobs that write at random and verify every block. Any error, and any wrong byte, ends it with another exit code than 0. */

const VERIFIED =
  'fio --output-format=terse --iodepth=16 --fsync=32 --randrepeat=0 --verify=crc32c --verify_fatal=1 --verify_state_save=0';
const IN_GUEST = '--ioengine=libaio --direct=1';

/** What a job does: the size of its blocks and of all of them, as fio writes sizes. */
export interface FioJob {
  readonly block: string;
  /** In KiB. */
  readonly size: number;
  /** Each block is trimmed before it is written. */
  readonly trims?: true;
}

/** From 4 KiB to 1 MiB, with flushes in between. */
export const ALL_SIZES: readonly FioJob[] = [
  { block: '4k', size: 512 },
  { block: '64k', size: 2048 },
  { block: '1m', size: 4096 },
];
export const SMALL_SIZES: readonly FioJob[] = [
  { block: '4k', size: 256 },
  { block: '16k', size: 256 },
];
export const TRIM: FioJob = { block: '32k', size: 512, trims: true };

/** All jobs at a time, each on a part of its own of the device that `where` names. */
function onParts(where: string, jobs: readonly FioJob[]): string {
  let offset = 0;
  const parts = jobs.map(({ block, size, trims }) => {
    // Trim and write race inside fio when more than one is under way.
    const what = trims === true ? 'randtrimwrite --iodepth=1' : 'randwrite';
    const part = `--name=b${block} --rw=${what} --bs=${block} --offset=${offset}k --size=${size}k`;
    offset += size;
    return part;
  });
  return `${VERIFIED} ${where} ${parts.join(' ')}`;
}

/** A line of shell for a guest. */
export const fioOnDevice = (device: string, jobs: readonly FioJob[]) =>
  onParts(`${IN_GUEST} --filename=${device}`, jobs);

/** A line of shell for this machine. */
export const fioOverNbd = (socket: string, jobs: readonly FioJob[]) =>
  onParts(`--ioengine=nbd --thread --uri="nbd+unix:///?socket=${socket}"`, jobs);

/** A line of shell: all jobs at a time, each on a file of its own. */
export function fioInFolder(folder: string, jobs: readonly FioJob[]): string {
  const parts = jobs.map(
    ({ block, size }) => `--name=b${block} --directory=${folder} --rw=randwrite --bs=${block} --size=${size}k`,
  );
  return `${VERIFIED} ${IN_GUEST} ${parts.join(' ')}`;
}

const ENOUGH = '/tmp/fio-enough';

/** A line of shell that runs fio again and again, and ends after the run in which {@link enough} was said, or with the first error. */
export const fioUntilEnough = (device: string, jobs: readonly FioJob[]) =>
  `rm -f ${ENOUGH}; until [ -e ${ENOUGH} ]; do ${fioOnDevice(device, jobs)} > /dev/null || exit 1; done`;

/** A line of shell for {@link fioUntilEnough}. */
export const enough = `touch ${ENOUGH}`;
