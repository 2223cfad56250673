import type {
  AttachedCluster,
  AttachedDisk,
  AttachedEndpoint,
  AttachedMessages,
  AttachedProgram,
  AttachedState,
  AttachedSwitch,
} from '../messages/attached.js';
import { ChartGroup } from './chart-group.js';
import { ClusterDetailView } from './cluster-detail.js';
import { DiskDetailView } from './disk-detail.js';
import { byId, element, panel } from './dom.js';
import { EndpointDetailView } from './endpoint-detail.js';
import { EventList } from './event-list.js';
import type { KeyAction } from './keyboard.js';
import type { ProgramDetail } from './program-detail.js';
import { ProgramList } from './program-list.js';
import { followStream, getJson, say } from './server-link.js';
import { SwitchDetailView } from './switch-detail.js';

const SAMPLES_SHOWN = 240;

export class AttachedView {
  readonly #programs = new Map<string, AttachedProgram>();
  readonly #list = new ProgramList((id) => this.#choose(id));
  readonly #events = new EventList();
  readonly #charts = new ChartGroup();
  readonly #details: Readonly<Record<AttachedProgram['kind'], ProgramDetail<AttachedProgram>>> = {
    endpoint: new EndpointDetailView(
      this.#charts,
    ) satisfies ProgramDetail<AttachedEndpoint> as ProgramDetail<AttachedProgram>,
    switch: new SwitchDetailView(
      this.#charts,
    ) satisfies ProgramDetail<AttachedSwitch> as ProgramDetail<AttachedProgram>,
    disk: new DiskDetailView(this.#charts) satisfies ProgramDetail<AttachedDisk> as ProgramDetail<AttachedProgram>,
    cluster: new ClusterDetailView(
      this.#charts,
    ) satisfies ProgramDetail<AttachedCluster> as ProgramDetail<AttachedProgram>,
  };
  readonly #detail = element('div', { class: 'detail' });
  #shownKind: AttachedProgram['kind'] | undefined;
  #chosen: string | undefined;
  #hasChosen = false;
  #isPaused = false;

  constructor(state: AttachedState) {
    this.#take(state);
  }

  readonly keys: readonly KeyAction[] = [
    { key: 'ArrowDown', name: 'down', does: 'the next program', run: () => this.#step(1) },
    { key: 'ArrowUp', name: 'up', does: 'the program before', run: () => this.#step(-1) },
    { key: 'Enter', name: 'Enter', does: 'to its details', run: () => this.#visitDetail() },
    { key: ' ', name: 'space', does: 'pause and continue', run: () => this.#togglePause() },
  ];

  start(view: HTMLElement): void {
    view.append(
      panel('Programs', 'wide', this.#list.element),
      this.#detail,
      panel('Events', 'wide', this.#events.element),
    );
    byId('pause').addEventListener('click', () => this.#togglePause());
    this.#show();
    followStream<AttachedMessages>(
      {
        program: (program) => this.#update(program),
        gone: ({ id }) => this.#remove(id),
        event: (event) => this.#events.add(event),
      },
      () => void this.#startOver(),
    );
  }

  #take({ programs, events, which }: AttachedState): void {
    this.#programs.clear();
    for (const program of programs) this.#programs.set(program.id, program);
    this.#events.element.replaceChildren();
    for (const event of events) this.#events.add(event);
    byId('title').textContent = which.length === 0 ? 'dashboard of what runs here' : `follows ${which.join(', ')}`;
  }

  async #startOver(): Promise<void> {
    this.#take(await getJson<AttachedState>('state'));
    this.#show();
  }

  #update(program: AttachedProgram): void {
    const before = this.#programs.get(program.id)?.samples ?? [];
    const last = before.at(-1)?.number ?? 0;
    const newer = program.samples.filter(({ number }) => number > last);
    const samples = [...before, ...newer].slice(-SAMPLES_SHOWN);
    this.#programs.set(program.id, { ...program, samples } as AttachedProgram);
    if (!this.#isPaused) this.#show();
  }

  #remove(id: string): void {
    this.#programs.delete(id);
    if (!this.#isPaused) this.#show();
  }

  #choose(id: string | undefined): void {
    if (id === undefined) return;
    this.#hasChosen = true;
    this.#chosen = id;
    this.#show();
  }

  #step(by: 1 | -1): void {
    const ids = this.#ordered.map(({ id }) => id);
    const at = ids.indexOf(this.#chosen ?? '');
    this.#choose(ids[Math.min(ids.length - 1, Math.max(0, at + by))]);
  }

  #visitDetail(): void {
    const first = this.#detail.firstElementChild as HTMLElement | null;
    if (first === null) return;
    first.tabIndex = -1;
    first.focus({ preventScroll: true });
    first.scrollIntoView({ block: 'start' });
  }

  get #ordered(): readonly AttachedProgram[] {
    return [...this.#programs.values()].sort((a, b) => a.pid - b.pid || a.kind.localeCompare(b.kind));
  }

  #togglePause(): void {
    this.#isPaused = !this.#isPaused;
    byId('pause').setAttribute('aria-pressed', String(this.#isPaused));
    say(this.#isPaused ? 'paused: the programs continue' : 'live');
    if (!this.#isPaused) this.#show();
  }

  #show(): void {
    if (this.#chosen !== undefined && !this.#programs.has(this.#chosen)) this.#hasChosen = false;
    if (!this.#hasChosen) {
      const troubled = this.#ordered.find(({ health }) => !health.isGood);
      this.#hasChosen = troubled !== undefined;
      const last = this.#ordered.find(({ id }) => id === this.#chosen);
      this.#chosen = (troubled ?? last ?? this.#ordered[0])?.id;
    }
    this.#list.show(this.#ordered, this.#chosen);
    const chosen = this.#chosen === undefined ? undefined : this.#programs.get(this.#chosen);
    if (chosen?.kind !== this.#shownKind) {
      this.#shownKind = chosen?.kind;
      this.#detail.replaceChildren(...(chosen === undefined ? [] : this.#details[chosen.kind].panels));
    }
    if (chosen === undefined) return;
    this.#detail.dataset['program'] = chosen.id;
    this.#details[chosen.kind].show(chosen);
  }
}
