import { LazySignal } from './lazy-signal.js';

/** What a loader gets; the batch of a call for many keys also learns by it that a loader waits for one of them. */
export class LoadSignal extends LazySignal {
  isUrgent = false;
  /** Called once, when it becomes urgent. */
  onHurry: (() => void) | undefined;

  hurry(): void {
    if (this.isUrgent) return;
    this.isUrgent = true;
    this.onHurry?.();
  }
}
