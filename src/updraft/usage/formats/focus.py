"""Machine-days as FinOps tools take them: FOCUS 1.0, a row for each machine and UTC day, as CSV.

FOCUS (focus.finops.org) is what clouds give out as cost and usage reports. It is made for bills, and this is
none: `BilledCost` is 0, since nobody was billed by it, and the estimate is in the other costs. It has no word
for a cost that isn't known: such machine-days are left out and counted.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from updraft.errors import UsageError
from updraft.usage import NOT_THE_BILL
from updraft.usage.figures import HOUR
from updraft.usage.period import date_of, midnight, moment

# All columns of FOCUS 1.0, and our own behind them, which have to begin with x_.
COLUMNS = (
    *("AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency"),
    *("BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription"),
    *("ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart", "CommitmentDiscountCategory"),
    *("CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType"),
    *("ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost"),
    *("InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit"),
    *(
        "ProviderName",
        "PublisherName",
        "RegionId",
        "RegionName",
        "ResourceId",
        "ResourceName",
        "ResourceType",
    ),
    *("ServiceCategory", "ServiceName", "SkuId", "SkuPriceId", "SubAccountId", "SubAccountName", "Tags"),
    *("x_Estimate", "x_Class", "x_Annex", "x_AnnexOwner", "x_Cores", "x_UsedCoreHours"),
)


def rows(days: Iterable[dict[str, Any]], currency: str) -> Iterator[dict[str, Any] | None]:
    """A row for each record; None for one whose cost isn't known.

    `currency` is that of records that have none. Raises UsageError where there is none at all.
    """
    for day in days:
        if day["alive"] <= 0:
            continue
        yield None if day["unpriced"] > 0 else _row(day, day["currency"] or currency)


def _row(day: dict[str, Any], currency: str) -> dict[str, Any]:
    if not currency:
        raise UsageError('FOCUS wants a currency for each cost: say it, as in [usage] currency = "EUR"')
    hours, cost = day["alive"] / HOUR, day["cost"]
    first = date_of(day["day"]).replace(day=1)
    spot = day["market"] == "spot"
    return {
        "AvailabilityZone": day["zone"],
        "BilledCost": 0.0,
        "BillingAccountId": day["pool"],
        "BillingAccountName": day["pool"],
        "BillingCurrency": currency,
        "BillingPeriodStart": f"{first}T00:00:00Z",
        "BillingPeriodEnd": f"{_next_month(first)}T00:00:00Z",
        "ChargeCategory": "Usage",
        "ChargeDescription": f"{NOT_THE_BILL}: {day['flavor']} of class {day['class']}",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": moment(midnight(day["day"])),
        "ChargePeriodEnd": moment(midnight(day["day"] + 1)),
        "ConsumedQuantity": hours,
        "ConsumedUnit": "Hours",
        **dict.fromkeys(("ContractedCost", "EffectiveCost", "ListCost"), cost),
        **dict.fromkeys(("ContractedUnitPrice", "ListUnitPrice"), cost / hours),
        "PricingCategory": "Dynamic" if spot else "Standard",
        "PricingQuantity": hours,
        "PricingUnit": "Hours",
        **dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), day["cloud"]),
        **dict.fromkeys(("RegionId", "RegionName"), day["region"]),
        **dict.fromkeys(("ResourceId", "ResourceName"), day["instance"]),
        "ResourceType": "Virtual Machine",
        "ServiceCategory": "Compute",
        "ServiceName": "Virtual machines",
        "SkuId": day["flavor"],
        "SkuPriceId": f"{day['flavor']}/{day['market']}",
        "Tags": json.dumps({"updraft:pool": day["pool"], "updraft:class": day["class"]}),
        "x_Estimate": "true",
        "x_Class": day["class"],
        "x_Annex": day["annex"],
        "x_AnnexOwner": day["owner"],
        "x_Cores": day["cores"],
        "x_UsedCoreHours": day["core_seconds"] / HOUR,
    }


def _next_month(first: date) -> date:
    return date(first.year + first.month // 12, first.month % 12 + 1, 1)
