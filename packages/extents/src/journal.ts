/**
 * The journal of a node: a ring file of fixed size, best on a separate device, that takes the changes of all replicas.
 * One write and one sync make any number of extents durable; the files are written concurrently and synced by a
 * checkpoint. A starting node replays the ring in order and begins an empty one. The file head has the owner, the
 * node's boot count, the ring's start, and a random mark, which each start and each checkpoint replace. The folder has
 * the same mark: first as the next one, and alone once the head has it. So an older copy of either is refused, because
 * acknowledged data may be in the other one alone.
 */

import { type Clock, NS_PER_MS, type RandomSource, RoceError } from 'rocev2/internal/core';
import { GroupCommit } from 'rocev2/internal/disk';
import { DurableValue, SLOTS_BYTES } from './durable-value.js';
import type { ExtentFile, ExtentFiles } from './extent-files.js';
import { otherVersion } from './format-mark.js';
import {
  type FileChange,
  FRAME_ALIGN,
  FRAME_HEAD_BYTES,
  FRAME_VERSION,
  FrameFormat,
  type FrameOwner,
} from './journal-frame.js';
import { randomName } from './random-name.js';

/** Files are synced after this time, even if the journal is far from full, so that a start has less to replay. */
const CHECKPOINT_MS = 5_000;
/** Other formats, such as file systems, have their marks within this range. */
const BLANK_BYTES = 128 << 10;
const SCAN_BYTES = 1 << 20;
const MARK_WORDS = 2;

export interface JournalDevice {
  readonly file: ExtentFile;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly checkpointMs?: number;
}

export interface JournalOwner extends FrameOwner {
  /** The mark of the journal that the folder needs, and the one that it was about to get. */
  readonly used: string | number | undefined;
  readonly next: string | undefined;
  /** The operator says that the folder may be used with another journal. */
  readonly isTrusted?: boolean;
}

/** Where the folder keeps the mark of its journal. Both resolve when the change is durable. */
export interface JournalMarks {
  /** The journal is about to get this mark. */
  prepare(mark: string): Promise<void>;
  /** The journal has it: one with the mark before is an older copy. */
  settle(mark: string): Promise<void>;
}

/** How full a journal is. */
export interface JournalUse {
  /** Bytes that it has room for. */
  readonly bytes: number;
  /** Bytes of changes that are not yet durable in their files. */
  readonly usedBytes: number;
}

interface JournalHead extends FrameOwner {
  /** Missing in a journal of an earlier version: then the start that began it identifies it. */
  readonly mark?: string;
  /** Version of its frames; missing in a journal of an earlier version: 1. */
  readonly frames?: number;
  /** Bytes of the ring. */
  readonly ring: number;
  /** Everything before this position is durable in its file. */
  readonly tail: number;
}

interface Pending {
  readonly frame: Buffer;
  readonly file: ExtentFile;
}

interface FramePlace {
  readonly place: number;
  readonly length: number;
  readonly position: number;
}

interface Run {
  readonly place: number;
  readonly frames: Buffer[];
}

export class Journal {
  readonly #file: ExtentFile;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #checkpointNs: number;
  readonly #owner: JournalOwner;
  readonly #head: DurableValue<JournalHead>;
  readonly #format: FrameFormat;
  readonly #ring: number;
  readonly #pending: Pending[] = [];
  #marks: JournalMarks | undefined;
  #end = 0;
  #checkpoint = 1;
  readonly #files = new Map<ExtentFile, number>();
  #reached = { position: 0, checkpoint: 0 };
  #failure: Error | undefined;
  #isClosing = false;
  #isMakingRoom = false;
  #stopTimer: (() => void) | undefined;
  readonly #flushes = new GroupCommit(() => this.#unlessFailed(() => this.#flush()));
  readonly #fileSyncs = new GroupCommit(() => this.#unlessFailed(() => this.#syncFiles()));

  private constructor(device: JournalDevice, owner: JournalOwner, head: DurableValue<JournalHead>, bytes: number) {
    this.#file = device.file;
    this.#clock = device.clock;
    this.#random = device.random;
    this.#checkpointNs = (device.checkpointMs ?? CHECKPOINT_MS) * NS_PER_MS;
    this.#owner = owner;
    this.#head = head;
    this.#format = new FrameFormat(owner);
    this.#ring = Math.floor((bytes - SLOTS_BYTES) / FRAME_ALIGN) * FRAME_ALIGN;
  }

  static async open(device: JournalDevice, owner: JournalOwner): Promise<Journal> {
    const head = await DurableValue.load<JournalHead>(device.file, 'the journal');
    await checkHead(device.file, head.value, owner);
    return new Journal(device, owner, head, await device.file.size());
  }

  /** Does all changes of the last start again in `files`, and begins an empty journal for this one. */
  async begin(files: ExtentFiles, marks: JournalMarks): Promise<void> {
    const { cluster, node, life } = this.#owner;
    const last = this.#head.value;
    if (last !== undefined && isNeeded(last, this.#owner)) await replay(this.#file, last, files);
    this.#marks = marks;
    // The last start ended after the head had its next mark: the folder may forget the one before, and get another next.
    // A process that was killed before its sync has left a head that a power failure may still take away.
    if (last?.mark !== undefined && last.mark === this.#owner.next) {
      await this.#file.sync();
      await marks.settle(last.mark);
    }
    await this.#storeHead({ cluster, node, life, ring: this.#ring, tail: 0 });
  }

  async #storeHead(head: JournalHead): Promise<void> {
    const mark = randomName(this.#random, MARK_WORDS);
    await this.#marks!.prepare(mark);
    await this.#head.store({ ...head, frames: FRAME_VERSION, mark });
    await this.#marks!.settle(mark);
  }

  get use(): JournalUse {
    return { bytes: this.#ring, usedBytes: this.#end - this.#head.value!.tail };
  }

  /** Nothing is written from then on. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** What is longer is synced in its file at once. */
  get changeMax(): number {
    return this.#ring / 4 - FRAME_ALIGN;
  }

  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isClosing) throw new RoceError('ERR_ROCE_CLOSED', 'the journal is closed');
  }

  add(file: ExtentFile, change: FileChange): void {
    this.#files.set(file, this.#checkpoint);
    this.#pending.push({ frame: this.#format.encode(change), file });
  }

  async commit(): Promise<void> {
    this.check();
    await this.#flushes.commit();
  }

  async commitTo(file: ExtentFile): Promise<void> {
    this.check();
    this.#files.set(file, this.#checkpoint);
    await this.checkpoint();
  }

  /** Resolves when all changes before the call are durable in their files, and the ring has room. */
  async checkpoint(): Promise<void> {
    await this.#flushes.commit(); // So that what is older than the checkpoint is not done again over what is younger.
    await this.#fileSyncs.commit();
    await this.#flushes.commit();
  }

  /** Resolves when the ring has no change of this file, which is about to be closed. */
  async release(file: ExtentFile): Promise<void> {
    if (this.#failure !== undefined) return;
    if (this.#files.has(file)) await this.checkpoint().catch(() => {});
  }

  async close(): Promise<boolean> {
    this.#isClosing = true;
    this.#stopTimer?.();
    await this.checkpoint().catch(() => {});
    return this.#failure === undefined;
  }

  async #unlessFailed(work: () => Promise<void>): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      await work();
    } catch (error) {
      this.#failure ??= error as Error;
      throw error;
    }
  }

  async #flush(): Promise<void> {
    await this.#storeTail();
    for (let left = this.#pending.length; left > 0; ) {
      const runs = this.#placeSome(left);
      if (runs.length === 0) {
        await this.#fileSyncs.commit();
        await this.#storeTail();
        continue;
      }
      for (const { place, frames } of runs) {
        left -= frames.length;
        await this.#file.write(SLOTS_BYTES + place, frames.length === 1 ? frames[0] : Buffer.concat(frames));
      }
      await this.#file.sync();
    }
    this.#checkpointInTime();
  }

  /** Durable itself before anything is written there. */
  async #storeTail(): Promise<void> {
    const { position, checkpoint } = this.#reached;
    if (position !== this.#head.value!.tail) await this.#storeHead({ ...this.#head.value!, tail: position });
    for (const [file, number] of this.#files) if (number <= checkpoint) this.#files.delete(file);
  }

  #placeSome(countMax: number): Run[] {
    const runs: Run[] = [];
    const { tail } = this.#head.value!;
    let count = 0;
    for (; count < countMax; count++) {
      const { frame } = this.#pending[count];
      const left = this.#ring - (this.#end % this.#ring);
      const skipped = frame.length > left ? left : 0; // A frame does not go around the end of the ring.
      if (this.#end + skipped + frame.length - tail > this.#ring) break;
      this.#end += skipped;
      this.#format.place(frame, this.#end);
      const place = this.#end % this.#ring;
      if (count === 0 || place === 0) runs.push({ place, frames: [] });
      runs.at(-1)!.frames.push(frame);
      this.#end += frame.length;
    }
    this.#pending.splice(0, count);
    return runs;
  }

  #checkpointInTime(): void {
    if (this.#isClosing || this.#files.size === 0) return;
    if (this.use.usedBytes <= this.#ring / 2) {
      this.#stopTimer ??= this.#clock.wakeAt(this.#clock.nowNs() + this.#checkpointNs, () => this.#makeRoom());
    } else if (!this.#isMakingRoom) this.#makeRoom();
  }

  #makeRoom(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#isMakingRoom = true;
    this.checkpoint()
      .catch(() => {})
      .finally(() => {
        this.#isMakingRoom = false;
      });
  }

  async #syncFiles(): Promise<void> {
    const position = this.#end;
    const checkpoint = this.#checkpoint++;
    const files = [...this.#files].filter(([, number]) => number === checkpoint);
    for (const { file } of this.#pending) this.#files.set(file, this.#checkpoint);
    // One after another: the sync of the journal, which appends wait for, has to find a thread.
    for (const [file] of files) await file.sync();
    this.#reached = { position, checkpoint };
  }
}

async function checkHead(file: ExtentFile, head: JournalHead | undefined, owner: JournalOwner): Promise<void> {
  const { cluster, node, life, isTrusted = false } = owner;
  const used = isTrusted ? undefined : owner.used;
  if (head === undefined) {
    if (used !== undefined) throw wrongJournal(node, 'this one is empty, or damaged');
    const start = await file.read(0, BLANK_BYTES);
    if (!start.equals(Buffer.alloc(start.length))) {
      const hint = 'name a new file, or a device whose first 128 KiB are zeros';
      throw new RoceError('ERR_ROCE_MISMATCH', 'the journal has something else in it', hint);
    }
    return;
  }
  const { frames = 1 } = head;
  if (frames !== FRAME_VERSION) throw otherVersion('the journal', `frames ${frames}`);
  if (head.cluster !== cluster || head.node !== node) {
    const text = `the journal is that of node ${head.node} of cluster ${head.cluster}, and not of node ${node}`;
    const hint =
      'name the journal of this node; if the other node is permanently lost, fill the first 128 KiB with zeros';
    throw new RoceError('ERR_ROCE_MISMATCH', text, hint);
  }
  if (head.life >= life) {
    const text = `the folder of node ${node} is an older copy: its journal was begun in start ${head.life}, this is start ${life}`;
    throw new RoceError('ERR_ROCE_MISMATCH', text, 'empty folder and journal, and the cluster fills them again');
  }
  if (used !== undefined && !isNeeded(head, owner))
    throw wrongJournal(
      node,
      `this one, begun in start ${head.life}, has another mark: it or the folder is an older copy`,
    );
  if (used !== undefined && (await file.size()) < SLOTS_BYTES + head.ring)
    throw wrongJournal(node, `this one has been cut, and had ${SLOTS_BYTES + head.ring} bytes`);
}

function isNeeded({ mark, life }: JournalHead, { used, next }: JournalOwner): boolean {
  return used !== undefined && [used, next].includes(mark ?? life);
}

function wrongJournal(node: number, why: string): RoceError {
  const hint =
    'restore the latest folder and its journal; if one is lost, empty both, and the cluster fills them again';
  return new RoceError('ERR_ROCE_MISMATCH', `the journal is not the one that node ${node} had: ${why}`, hint);
}

export function missingJournal(node: number): RoceError {
  return new RoceError(
    'ERR_ROCE_MISMATCH',
    `node ${node} had a journal and was not ended in order: its last acknowledged records may be only there`,
    "name its journal; if that is lost, empty the folder, and the cluster fills it again (if no other replicas are left: 'extents node --trust-folder' uses it without)",
  );
}

/** Done again after a crash in the middle, it comes to the same. */
async function replay(file: ExtentFile, head: JournalHead, files: ExtentFiles): Promise<void> {
  const format = new FrameFormat(head);
  const frames = await intactFrames(file, head, format);
  const names = new Set(await files.list());
  const opened = new Map<string, ExtentFile>();
  for (const { place, length } of frames) {
    const { name, offset, bytes } = format.decode(await file.read(SLOTS_BYTES + place, length));
    if (!names.has(name)) continue;
    const target = opened.get(name) ?? (await files.open(name));
    opened.set(name, target);
    if (bytes === undefined) await target.truncate(offset);
    else await target.write(offset, bytes);
  }
  for (const target of opened.values()) {
    await target.sync();
    await target.close();
  }
}

/** Frames after a damaged one count: each was acknowledged separately. */
async function intactFrames(
  file: ExtentFile,
  { ring, tail }: JournalHead,
  format: FrameFormat,
): Promise<readonly FramePlace[]> {
  const frames: FramePlace[] = [];
  let chunk: { readonly from: number; readonly bytes: Buffer } = { from: 0, bytes: Buffer.alloc(0) };
  for (let place = 0; place < ring; ) {
    if (place + FRAME_HEAD_BYTES > chunk.from + chunk.bytes.length) {
      const bytes = await file.read(SLOTS_BYTES + place, Math.min(SCAN_BYTES, ring - place));
      if (bytes.length < FRAME_HEAD_BYTES) break;
      chunk = { from: place, bytes };
    }
    const seen = format.look(chunk.bytes.subarray(place - chunk.from));
    const isHere = seen !== undefined && seen.position >= tail && seen.position % ring === place;
    if (isHere && place + seen.length <= ring) {
      const frame = await file.read(SLOTS_BYTES + place, seen.length);
      if (frame.length === seen.length && format.isIntact(frame)) {
        frames.push({ place, ...seen });
        place += seen.length;
        continue;
      }
    }
    place += FRAME_ALIGN;
  }
  return frames.sort((a, b) => a.position - b.position);
}
