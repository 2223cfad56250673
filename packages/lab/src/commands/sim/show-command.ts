import { defineDocument, type Output } from '@rocev2/command';
import type { Original } from '../../sim/scenario/like.js';
import { parseScenario, type ScenarioFile } from '../../sim/scenario/schema.js';
import { loadDocument } from './load.js';

/** The fields of `sim show --json`. */
interface ShownScenario {
  /** The scenario file, which `sim run` takes. */
  readonly scenario: ScenarioFile;
}

const SIM_SHOW_DOCUMENT = defineDocument<ShownScenario>('sim-show');

export async function showCommand(
  name: string,
  { set = [], like }: { readonly set?: readonly string[]; readonly like?: Original },
  output: Output,
): Promise<void> {
  const scenario = (await loadDocument({ name, set, ...(like !== undefined && { like }) })) as ScenarioFile;
  parseScenario(scenario);
  output.line(JSON.stringify(scenario, null, 2));
  output.document(SIM_SHOW_DOCUMENT, { scenario });
}
