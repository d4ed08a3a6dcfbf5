import { Injectable, NotFoundException } from '@nestjs/common';
import { type Lock, LockService, WithLock } from 'nestjs-stampede-cache';
import { Database } from './database.js';

export interface Report {
  readonly day: string;
  readonly writtenBy: string;
  readonly fencingToken: number;
  readonly bestSellers: readonly { readonly name: string; readonly unitsSold: number }[];
}

const FIND = `
  select day::text as "day",
         written_by as "writtenBy",
         fencing_token::double precision as "fencingToken",
         best_sellers as "bestSellers"
    from catalog_sample.reports
   where day = current_date`;

/** A holder that lost its lock without noticing has a lower token than whoever came after it: its write does nothing. */
const WRITE = `
  insert into catalog_sample.reports (day, fencing_token, written_by, best_sellers)
  select current_date, $1, $2, json_agg(best)
    from (select product.name as "name", sum(line.quantity)::integer as "unitsSold"
            from catalog_sample.order_lines line
            join catalog_sample.products product on product.id = line.product_id
           group by product.id
           order by "unitsSold" desc, product.id
           limit 10) best
      on conflict (day) do update
     set fencing_token = excluded.fencing_token,
         written_by = excluded.written_by,
         best_sellers = excluded.best_sellers
   where reports.fencing_token < excluded.fencing_token`;

@Injectable()
export class ReportsService {
  constructor(
    private readonly database: Database,
    private readonly locks: LockService,
  ) {}

  /** Once a day, though a scheduler in each instance calls it: whoever had to wait for the lock finds the report written. */
  writeNightly(): Promise<Report> {
    return this.locks.withLock('nightly-report', { wait: '60s' }, async (lock) => {
      return (await this.read()) ?? this.write(lock);
    });
  }

  async findToday(): Promise<Report> {
    const report = await this.read();
    if (!report) throw new NotFoundException("Today's report is not written yet.");
    return report;
  }

  /** Where the method needs nothing of the lock, the decorator does. One at a time, in all instances together. */
  @WithLock(() => 'nightly-report')
  async deleteOlderThan(days: number): Promise<{ deleted: number }> {
    const deleted = await this.database.query(
      'delete from catalog_sample.reports where day < current_date - $1::integer returning day',
      [days],
    );
    return { deleted: deleted.length };
  }

  private async read(): Promise<Report | undefined> {
    const [report] = await this.database.query<Report>(FIND);
    return report;
  }

  private async write({ fencingToken, signal }: Lock): Promise<Report> {
    signal.throwIfAborted();
    await this.database.query(WRITE, [fencingToken, `process ${process.pid}`]);
    return this.findToday();
  }
}
