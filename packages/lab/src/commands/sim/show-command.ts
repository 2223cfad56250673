import { defineDocument, type Output } from '@rocev2/command';
import type { ScenarioFile } from '../../sim/scenario/schema.js';
import { loadDocument } from './load.js';

/** The fields of `sim show --json`. */
interface ShownScenario {
  /** The scenario file, which `sim run` takes. */
  readonly scenario: ScenarioFile;
}

const SIM_SHOW_DOCUMENT = defineDocument<ShownScenario>('sim-show');

export async function showCommand(
  name: string,
  { set = [] }: { readonly set?: readonly string[] },
  output: Output,
): Promise<void> {
  const scenario = (await loadDocument({ name, set })) as ScenarioFile;
  output.line(JSON.stringify(scenario, null, 2));
  output.document(SIM_SHOW_DOCUMENT, { scenario });
}
