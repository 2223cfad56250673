/** A cluster of extent nodes, all of them processes, with one disk `vol`, for suites that kill parts of it. */

import { Program } from '../../e2e/executable.js';
import { eventually } from '../../support/eventually.js';
import { LINE_START } from '../../support/log-line.js';

/** One that runs until it is ended. */
export class DiskCluster {
  readonly #up: Program;
  readonly #restartLimitMs: number;

  private constructor(up: Program, restartLimitMs: number) {
    this.#up = up;
    this.#restartLimitMs = restartLimitMs;
  }

  /** Starts the processes in `folder`, and makes the disk. `upFlags`: of `extents up`; a process that dies is started anew within `restartLimitMs`. */
  static async start(
    folder: string,
    { size, upFlags, restartLimitMs }: { size: string; upFlags: readonly string[]; restartLimitMs: number },
  ): Promise<DiskCluster> {
    const up = Program.rocev2('extents', 'up', '--dir', folder, '-p', '0', '--restart', ...upFlags);
    await up.writes('stderr', /Ctrl-C ends it/);
    const cluster = new DiskCluster(up, restartLimitMs);
    const create = Program.rocev2('extents', 'disk', 'create', 'vol', '--size', size, '--manager', cluster.manager);
    if ((await create.ended()) !== 0) throw new Error(create.stderr);
    return cluster;
  }

  /** Where the manager is, `HOST:PORT`; several with commas. */
  get manager(): string {
    const places = [
      ...this.#up.stderr.matchAll(new RegExp(`${LINE_START}(?:the manager|manager \\d+) is at (\\S+),`, 'gm')),
    ];
    return [...new Set(places.map(([, place]) => place))].join(); // One that was started anew is where it was.
  }

  /** What a manager at this place is called here. */
  managerAt(place: string): string {
    const at = place.replace(/[.[\]]/g, '\\$&');
    return new RegExp(`${LINE_START}(?:the )?(manager(?: \\d+)?) is at ${at},`, 'm').exec(this.#up.stderr)![1];
  }

  /** The disk, for whoever takes it over. */
  get backend(): string {
    return `stream:vol@${this.manager}?take-over`;
  }

  /** Process of `manager`, of `manager K` of several, or of the node in a folder, as it runs now. */
  processOf(what: string): number {
    const place = what.startsWith('manager') ? `(?:the )?${what} is at .*` : `node .*/${what}`;
    return Number([...this.#up.stderr.matchAll(new RegExp(`${LINE_START}${place}, process (\\d+)$`, 'gm'))].at(-1)![1]);
  }

  /** Kills a process of the cluster; resolves when another one is in its place. */
  async kill(what: string, meanwhile = () => {}): Promise<void> {
    const before = this.processOf(what);
    process.kill(before, 'SIGKILL');
    meanwhile();
    await eventually(() => this.processOf(what) !== before, { limitMs: this.#restartLimitMs, everyMs: 100 });
  }

  /** Ends all processes, as by Ctrl-C. */
  async end(): Promise<void> {
    this.#up.kill('SIGINT');
    await this.#up.ended();
  }
}
