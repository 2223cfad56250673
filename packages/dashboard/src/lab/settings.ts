import { plainWords } from '@rocev2/command/schema';
import { RoceError } from 'rocev2/internal/core';
import { rateControlNames, rateControls } from 'rocev2/internal/dcqcn';
import { recoveryNamesByWaste, recoverySchemes } from 'rocev2/internal/retransmit';
import { z } from 'zod';
import { LAB_LINKS, LAB_LOSS_RULES, LAB_OPS, type LabChoices, type LabSettings } from '../messages/lab-messages.js';

function choice<const T extends string>(choices: readonly [T, ...T[]]) {
  return z.enum(choices, { error: `it is one of ${choices.join(', ')}` });
}

function oneOf(choices: () => readonly string[]) {
  return z.string().refine((name) => choices().includes(name), { error: () => `it is one of ${choices().join(', ')}` });
}

export function choices(): LabChoices {
  const schemes = recoveryNamesByWaste();
  const schemeSummaries = Object.fromEntries(schemes.map((name) => [name, recoverySchemes.get(name).summary]));
  const names = rateControlNames();
  const rateControlSummaries = Object.fromEntries(names.map((name) => [name, rateControls.get(name).summary]));
  return { schemes, schemeSummaries, rateControls: names, rateControlSummaries };
}

const settingsSchema = z
  .strictObject({
    op: choice(LAB_OPS),
    scheme: oneOf(() => choices().schemes),
    loss: choice(LAB_LOSS_RULES),
    link: choice(LAB_LINKS),
    cc: oneOf(() => choices().rateControls),
  })
  .partial();

export function parseSettings(value: unknown): Partial<LabSettings> {
  const parsed = settingsSchema.safeParse(value);
  if (parsed.success) return parsed.data as Partial<LabSettings>;
  const [issue] = parsed.error.issues;
  throw new RoceError('ERR_ROCE_MALFORMED', `${issue.path.join('.') || 'the settings'}: ${plainWords(issue)}`);
}
