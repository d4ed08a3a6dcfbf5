import { Injectable } from '@nestjs/common';
import { CacheAside, CacheEvict } from 'nestjs-stampede-cache';

@Injectable()
export class ProductsService {
  loads = 0;

  @CacheAside((id) => ['product', id], '60s')
  async find(id: string): Promise<{ id: string }> {
    this.loads += 1;
    return { id };
  }

  @CacheEvict((id) => ['product', id])
  async change(id: string): Promise<string> {
    return `changed ${id}`;
  }
}
