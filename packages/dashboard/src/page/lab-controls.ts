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

const LINK_LABELS: Readonly<Record<LabSettings['link'], string>> = {
  fast: 'fast',
  slow: '200 Mb/s, ECN',
  'slow-pfc': '200 Mb/s, ECN, PFC',
};

export class LabControls {
  readonly element: HTMLElement;
  readonly keys: readonly KeyAction[];
  readonly #groups: { readonly [N in keyof LabSettings]: ChoiceGroup<LabSettings[N]> };

  constructor({ schemes, rateControls }: LabChoices, onChoose: (change: Partial<LabSettings>) => void) {
    const plain = <T extends string>(values: readonly T[]) => values.map((value) => ({ value, label: value }));
    const schemeKeys = schemes.slice(0, 9);
    this.#groups = {
      scheme: new ChoiceGroup(
        'scheme',
        `recovery scheme (keys ${schemeKeys.map((_, i) => i + 1).join(', ')})`,
        plain(schemes),
        (scheme) => onChoose({ scheme }),
      ),
      loss: new ChoiceGroup(
        'loss',
        'the switch loses',
        LAB_LOSS_RULES.map((value) => ({ value, label: LOSS_LABELS[value] })),
        (loss) => onChoose({ loss }),
      ),
      op: new ChoiceGroup(
        'op',
        'operation',
        LAB_OPS.map((value) => ({ value, label: value.toUpperCase() })),
        (op) => onChoose({ op }),
      ),
      link: new ChoiceGroup(
        'link',
        'link to B',
        LAB_LINKS.map((value) => ({ value, label: LINK_LABELS[value] })),
        (link) => onChoose({ link }),
      ),
      cc: new ChoiceGroup('cc', 'rate control', plain(rateControls), (cc) => onChoose({ cc })),
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
