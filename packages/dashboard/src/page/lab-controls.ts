import { LAB_LINKS, LAB_LOSS_RULES, LAB_OPS, type LabChoices, type LabSettings } from '../messages/lab-messages.js';
import { ChoiceGroup } from './choice-group.js';
import { element, panel } from './dom.js';
import type { KeyAction } from './keyboard.js';

const LOSS_LABELS: Readonly<Record<LabSettings['loss'], string>> = {
  none: 'nothing',
  'ip-id-lsb=0xff': '1 packet in 256',
  'random=0.001': '0.1 % at random',
  'random=0.01': '1 % at random',
};
const LOSS_KEYS = 'nqwe';

const OP_SUMMARIES: Readonly<Record<LabSettings['op'], string>> = {
  send: 'A sends; B has posted receives',
  write: 'A writes to the memory of B',
  read: 'B reads from the memory of A',
};

const LOSS_SUMMARIES: Readonly<Record<LabSettings['loss'], string>> = {
  none: 'every packet arrives',
  'ip-id-lsb=0xff': 'four losses in each message of 1 MiB',
  'random=0.001': 'one loss in each message, on average',
  'random=0.01': 'ten losses in each message, on average',
};

const LINK_SUMMARIES: Readonly<Record<LabSettings['link'], string>> = {
  fast: 'no limit, so no queue',
  slow: 'the switch queues packets, and marks them (ECN)',
  'slow-pfc': 'the switch also pauses A before its buffer is full (PFC)',
};

const LINK_LABELS: Readonly<Record<LabSettings['link'], string>> = {
  fast: 'fast',
  slow: '200 Mb/s, ECN',
  'slow-pfc': '200 Mb/s, ECN, PFC',
};

export class LabControls {
  readonly element: HTMLElement;
  readonly keys: readonly KeyAction[];
  readonly #groups: { readonly [N in keyof LabSettings]: ChoiceGroup<LabSettings[N]> };

  constructor(choices: LabChoices, onChoose: (change: Partial<LabSettings>) => void) {
    const { schemes, rateControls, schemeSummaries, rateControlSummaries } = choices;
    const schemeKeys = schemes.slice(0, 9);
    this.#groups = {
      scheme: new ChoiceGroup(
        'scheme',
        `recovery scheme (keys ${schemeKeys.map((_, i) => i + 1).join(', ')})`,
        schemes.map((value) => ({ value, label: value, summary: schemeSummaries[value] })),
        (scheme) => onChoose({ scheme }),
      ),
      op: new ChoiceGroup(
        'op',
        'operation',
        LAB_OPS.map((value) => ({ value, label: value.toUpperCase(), summary: OP_SUMMARIES[value] })),
        (op) => onChoose({ op }),
      ),
      loss: new ChoiceGroup(
        'loss',
        'the switch loses',
        LAB_LOSS_RULES.map((value) => ({ value, label: LOSS_LABELS[value], summary: LOSS_SUMMARIES[value] })),
        (loss) => onChoose({ loss }),
      ),
      link: new ChoiceGroup(
        'link',
        'link to B',
        LAB_LINKS.map((value) => ({ value, label: LINK_LABELS[value], summary: LINK_SUMMARIES[value] })),
        (link) => onChoose({ link }),
      ),
      cc: new ChoiceGroup(
        'cc',
        'rate control',
        rateControls.map((value) => ({ value, label: value, summary: rateControlSummaries[value] })),
        (cc) => onChoose({ cc }),
      ),
    };
    const groups = Object.values(this.#groups).map((group) => group.element);
    this.element = panel('Controls', 'wide', element('div', { class: 'controls' }, ...groups));
    this.element.classList.add('sticky');
    this.keys = [
      ...schemeKeys.map((scheme, i) => keyOf(String(i + 1), scheme, () => onChoose({ scheme }))),
      ...LAB_LOSS_RULES.map((loss, i) => keyOf(LOSS_KEYS[i], `lose ${LOSS_LABELS[loss]}`, () => onChoose({ loss }))),
    ];
  }

  show(settings: LabSettings): void {
    this.#groups.scheme.show(settings.scheme);
    this.#groups.loss.show(settings.loss);
    this.#groups.op.show(settings.op);
    this.#groups.link.show(settings.link);
    this.#groups.cc.show(settings.cc);
  }
}

function keyOf(key: string, does: string, run: () => void): KeyAction {
  return { key, name: key, does, run };
}
