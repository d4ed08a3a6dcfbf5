import { Body, Controller, Get, HttpCode, Param, ParseIntPipe, Patch } from '@nestjs/common';
import { type Product, ProductsService } from './products.service.js';

@Controller('products')
export class ProductsController {
  constructor(private readonly products: ProductsService) {}

  @Get(':id')
  findOne(@Param('id', ParseIntPipe) id: number): Promise<Product> {
    return this.products.findOne(id);
  }

  @Get(':id/uncached')
  findOneUncached(@Param('id', ParseIntPipe) id: number): Promise<Product> {
    return this.products.findOneUncached(id);
  }

  @Patch(':id')
  @HttpCode(204)
  changePrice(
    @Param('id', ParseIntPipe) id: number,
    @Body('priceInCents', ParseIntPipe) priceInCents: number,
  ): Promise<void> {
    return this.products.changePrice(id, priceInCents);
  }
}
