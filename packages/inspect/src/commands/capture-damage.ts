import { CommandFailure, EXIT_FAILED } from '@rocev2/command';
import type { CaptureDamage } from 'rocev2/internal/capture';

export function failIfDamaged(path: string, damage: CaptureDamage | undefined): void {
  if (damage === undefined) return;
  throw new CommandFailure(EXIT_FAILED, `${path} is damaged at byte ${damage.offset}: ${damage.reason}`);
}
