import { Controller, Get } from '@nestjs/common';
import { CacheResponse } from 'nestjs-stampede-cache';

@Controller()
export class PagesController {
  pages = 0;

  @Get('page')
  @CacheResponse('60s')
  page(): { page: number } {
    this.pages += 1;
    return { page: this.pages };
  }
}
